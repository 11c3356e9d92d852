#include "flux/data/parquet/row_source.h"

#include <algorithm>
#include <utility>

namespace flux {

RowSource::RowSource(std::shared_ptr<const ParquetFile> file, ColumnMap map,
                     const DataOptions& options, uint32_t block_rows)
    : file_(std::move(file)),
      layout_(std::make_shared<const RowLayout>(RowLayout{RowReading(options), std::move(map)})),
      block_rows_(block_rows),
      kept_(keeps_cursor(*file_, block_rows)),
      columns_(std::make_shared<ReusePool<ParquetColumns>>(
          [file = file_] { return std::make_unique<ParquetColumns>(*file); })),
      batches_(std::make_shared<ReusePool<Batch>>([] { return std::make_unique<Batch>(); })) {}

Result<RowSource::Columns> RowSource::next(ParquetCursor* cursor, uint32_t rows) const {
  const std::shared_ptr<ParquetColumns> out = columns_->take();
  FLUX_RETURN_IF_ERROR(cursor->read(rows, out.get()));
  return Columns(out);
}

Result<std::shared_ptr<const Batch>> RowSource::rows_of(const ParquetColumns& columns,
                                                        const DataBlock& block) const {
  const std::shared_ptr<Batch> out = batches_->take();
  FLUX_RETURN_IF_ERROR(fill_rows(*layout_, columns.values(),
                                 {0, columns.rows(), file_->path(), block.lines_before, block.bad},
                                 out.get()));
  return std::shared_ptr<const Batch>(out);
}

Result<RowSource::Columns> RowSource::read_kept(uint64_t first, uint32_t rows) {
  if (cursor_ == nullptr || cursor_->row() > first || first - cursor_->row() > kPassedRows) {
    // All of a small file is kept on the way, for those who come in any order.
    const bool small = file_->rows() <= kPassedRows;
    FLUX_ASSIGN_OR_RETURN(cursor_,
                          ParquetCursor::start(file_, layout_->map.wanted, small ? 0 : first));
  }
  while (cursor_->row() < first) {
    const uint64_t at = cursor_->row();
    const auto some = static_cast<uint32_t>(std::min<uint64_t>(block_rows_, first - at));
    FLUX_ASSIGN_OR_RETURN(Columns passed, next(cursor_.get(), some));
    if (passed_.emplace(at, std::move(passed)).second) passed_rows_ += some;
    for (; passed_rows_ > kPassedRows; passed_.erase(passed_.begin()))
      passed_rows_ -= passed_.begin()->second->rows();
  }
  return next(cursor_.get(), rows);
}

std::unique_ptr<ParquetCursor> RowSource::take_idle(uint64_t row) {
  const std::lock_guard lock(mutex_);
  const auto at = std::find_if(idle_.begin(), idle_.end(),
                               [row](const auto& cursor) { return cursor->row() == row; });
  if (at == idle_.end()) return nullptr;
  std::unique_ptr<ParquetCursor> out = std::move(*at);
  idle_.erase(at);
  return out;
}

void RowSource::put_idle(std::unique_ptr<ParquetCursor> cursor) {
  if (cursor->row() >= file_->rows()) return;
  const std::lock_guard lock(mutex_);
  if (idle_.size() >= kIdleMax) idle_.erase(idle_.begin());
  idle_.push_back(std::move(cursor));
}

// Goes on where another block ended, if a cursor stands there; else from the row group's begin.
Result<RowSource::Columns> RowSource::read_anywhere(uint64_t first, uint32_t rows) {
  std::unique_ptr<ParquetCursor> cursor = take_idle(first);
  if (cursor == nullptr) {
    FLUX_ASSIGN_OR_RETURN(cursor, ParquetCursor::start(file_, layout_->map.wanted, first));
  }
  auto out = next(cursor.get(), rows);
  if (out.is_ok()) put_idle(std::move(cursor));
  return out;
}

Result<RowSource::Columns> RowSource::read(uint64_t first, uint32_t rows) {
  if (!kept_) return read_anywhere(first, rows);
  const std::lock_guard lock(mutex_);
  if (const auto at = passed_.find(first); at != passed_.end() && at->second->rows() == rows) {
    Columns out = at->second;
    passed_rows_ -= rows;
    passed_.erase(at);
    return out;
  }
  auto out = read_kept(first, rows);
  if (!out.is_ok() || first + rows == file_->rows()) cursor_.reset();
  return out;
}

}  // namespace flux
