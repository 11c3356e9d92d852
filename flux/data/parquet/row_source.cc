#include "flux/data/parquet/row_source.h"

#include <algorithm>
#include <utility>

namespace flux {
namespace {

// How many rows of these columns are read at once; 0 if nobody knows how large they become.
uint64_t rows_ahead(const ParquetFile& file, const ColumnMap& map) {
  uint64_t row_bytes = 0;
  for (const parquet_plugin::Wanted& wanted : map.wanted) {
    if (file.columns()[wanted.column].many) return 0;
    const bool keys = wanted.as == parquet_plugin::As::kKeys;
    row_bytes += keys ? sizeof(uint64_t) : sizeof(float);
  }
  return std::min(RowSource::kPassedRows,
                  RowSource::kAheadBytes / std::max<uint64_t>(1, row_bytes));
}

Result<RowSource::Columns> next(ParquetCursor* cursor, uint32_t rows,
                                ReusePool<ParquetColumns>* pool) {
  const std::shared_ptr<ParquetColumns> out = pool->take();
  FLUX_RETURN_IF_ERROR(cursor->read(rows, out.get()));
  return RowSource::Columns(out);
}

}  // namespace

RowSource::RowSource(std::shared_ptr<const ParquetFile> file, ColumnMap map,
                     const DataOptions& options, uint32_t block_rows)
    : file_(std::move(file)),
      layout_(std::make_shared<const RowLayout>(RowLayout{RowReading(options), std::move(map)})),
      block_rows_(block_rows),
      kept_(keeps_cursor(*file_, block_rows)),
      ahead_rows_(kept_ ? rows_ahead(*file_, layout_->map) : 0),
      columns_(make_pool(4)),
      batches_(std::make_shared<ReusePool<Batch>>([] { return std::make_unique<Batch>(); }, 4)) {}

RowSource::ColumnsPool RowSource::make_pool(size_t free_max) const {
  return std::make_shared<ReusePool<ParquetColumns>>(
      [file = file_] { return std::make_unique<ParquetColumns>(*file); }, free_max);
}

Result<std::shared_ptr<const Batch>> RowSource::rows_of(const Part& part,
                                                        const DataBlock& block) const {
  const std::shared_ptr<Batch> out = batches_->take();
  FLUX_RETURN_IF_ERROR(
      fill_rows(*layout_, part.columns->values(),
                {part.from, part.rows, file_->path(), block.lines_before, block.bad}, out.get()));
  return std::shared_ptr<const Batch>(out);
}

// `left`: of its rows, those that were not given to anyone.
void RowSource::keep(uint64_t first, Columns columns, uint32_t left) {
  if (const auto at = passed_.find(first); at != passed_.end()) {
    passed_rows_ -= at->second.columns->rows();
    passed_.erase(at);
  }
  passed_rows_ += columns->rows();
  passed_.emplace(first, Kept{std::move(columns), left});
  keep_at_most(kPassedRows + 2 * ahead_rows_);
}

void RowSource::keep_at_most(uint64_t rows) {
  for (; passed_rows_ > rows; passed_.erase(passed_.begin()))
    passed_rows_ -= passed_.begin()->second.columns->rows();
}

void RowSource::keep_less() {
  const std::lock_guard lock(mutex_);
  // Blocks of a small file come in any order, each out of what was kept of all.
  if (file_->rows() <= kPassedRows) return;
  keep_at_most(0);
  end_cursor();
}

std::optional<RowSource::Part> RowSource::find_kept(uint64_t first, uint32_t rows) {
  auto at = passed_.upper_bound(first);
  if (at == passed_.begin()) return std::nullopt;
  --at;
  Kept& kept = at->second;
  const uint64_t from = first - at->first;
  if (from + rows > kept.columns->rows()) return std::nullopt;
  Part out{kept.columns, static_cast<uint32_t>(from), rows};
  kept.left -= std::min(kept.left, rows);
  if (kept.left == 0) {
    passed_rows_ -= kept.columns->rows();
    passed_.erase(at);
  }
  return out;
}

void RowSource::end_cursor() {
  cursor_.reset();
  ahead_.reset();  // its memory goes with those who still read it
}

Status RowSource::pass_over(uint64_t first) {
  while (cursor_->row() < first) {
    const uint64_t at = cursor_->row();
    const auto some = static_cast<uint32_t>(std::min<uint64_t>(block_rows_, first - at));
    FLUX_ASSIGN_OR_RETURN(Columns passed, next(cursor_.get(), some, columns_.get()));
    keep(at, std::move(passed), some);
  }
  return Status::ok();
}

Result<RowSource::Part> RowSource::read_kept(uint64_t first, uint32_t rows, uint64_t end) {
  const bool goes_on =
      cursor_ != nullptr && cursor_->row() <= first && first - cursor_->row() <= kPassedRows;
  if (!goes_on) {
    // All of a small file is kept on the way, for those who come in any order.
    const bool small = file_->rows() <= kPassedRows;
    end_cursor();
    FLUX_ASSIGN_OR_RETURN(cursor_,
                          ParquetCursor::start(file_, layout_->map.wanted, small ? 0 : first));
  }
  FLUX_RETURN_IF_ERROR(pass_over(first));
  if (goes_on && !ahead_failed_ && end > first + rows) {
    if (auto out = read_ahead(first, rows, end)) return *std::move(out);
    // Once more, without those behind: the message is to be of the block that cannot be read.
    ahead_failed_ = true;
    end_cursor();
    return read_kept(first, rows, end);
  }
  FLUX_ASSIGN_OR_RETURN(Columns columns, next(cursor_.get(), rows, columns_.get()));
  return Part{std::move(columns), 0, rows};
}

std::optional<RowSource::Part> RowSource::read_ahead(uint64_t first, uint32_t rows, uint64_t end) {
  if (ahead_ == nullptr) ahead_ = make_pool(1);
  const auto all = static_cast<uint32_t>(end - first);
  const auto read = next(cursor_.get(), all, ahead_.get());
  if (!read.is_ok()) return std::nullopt;
  keep(first, read.value(), all - rows);
  return Part{read.value(), 0, rows};
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
Result<RowSource::Part> RowSource::read_anywhere(uint64_t first, uint32_t rows) {
  std::unique_ptr<ParquetCursor> cursor = take_idle(first);
  if (cursor == nullptr) {
    FLUX_ASSIGN_OR_RETURN(cursor, ParquetCursor::start(file_, layout_->map.wanted, first));
  }
  FLUX_ASSIGN_OR_RETURN(Columns columns, next(cursor.get(), rows, columns_.get()));
  put_idle(std::move(cursor));
  return Part{std::move(columns), 0, rows};
}

Result<RowSource::Part> RowSource::read(uint64_t first, uint32_t rows, uint64_t end) {
  if (!kept_) return read_anywhere(first, rows);
  const std::lock_guard lock(mutex_);
  if (auto kept = find_kept(first, rows)) return *std::move(kept);
  auto out = read_kept(first, rows, end);
  if (!out.is_ok() || (cursor_ != nullptr && cursor_->row() >= file_->rows())) end_cursor();
  return out;
}

}  // namespace flux
