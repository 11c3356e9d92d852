#include "flux/data/parquet/row_source.h"

#include <algorithm>
#include <utility>

namespace flux {
namespace {

constexpr size_t kColumnBytes = 512 << 10;  // of the columns that become rows at once: in the cache

}  // namespace

std::shared_ptr<Batch> BatchPool::take() {
  std::unique_ptr<Batch> batch;
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      batch = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (batch == nullptr) batch = std::make_unique<Batch>();
  return {batch.release(), [pool = shared_from_this()](Batch* used) {
            std::unique_ptr<Batch> back(used);
            const std::lock_guard lock(pool->mutex_);
            if (pool->free_.size() < kFreeMax) pool->free_.push_back(std::move(back));
          }};
}

RowSource::RowSource(std::shared_ptr<const ParquetFile> file, ColumnMap map,
                     const DataOptions& options, uint32_t block_rows)
    : file_(std::move(file)),
      map_(std::move(map)),
      reading_(options),
      block_rows_(block_rows),
      rows_at_once_(static_cast<uint32_t>(
          std::clamp<size_t>(kColumnBytes / (8 * map_.wanted.size() + 1), 256, 16 << 10))),
      kept_(keeps_cursor(*file_, block_rows)) {}

Result<RowSource::Rows> RowSource::next(ParquetCursor* cursor, uint32_t rows) const {
  const std::shared_ptr<Batch> out = memory_->take();
  RowFiller filler(reading_, map_, rows, out.get());
  for (uint32_t left = rows; left > 0;) {
    const uint64_t first = cursor->row();
    const uint32_t some = std::min(left, rows_at_once_);
    FLUX_ASSIGN_OR_RETURN(const auto* columns, cursor->read(some));
    FLUX_RETURN_IF_ERROR(filler.add(columns, file_->path(), first, some));
    left -= some;
  }
  filler.finish();
  return Rows(out);
}

Result<RowSource::Rows> RowSource::read_kept(uint64_t first, uint32_t rows) {
  if (cursor_ == nullptr || cursor_->row() > first || first - cursor_->row() > kPassedRows) {
    // All of a small file is kept on the way, for those who come in any order.
    const bool small = file_->rows() <= kPassedRows;
    FLUX_ASSIGN_OR_RETURN(cursor_, ParquetCursor::start(file_, map_.wanted, small ? 0 : first));
  }
  while (cursor_->row() < first) {
    const uint64_t at = cursor_->row();
    const auto some = static_cast<uint32_t>(std::min<uint64_t>(block_rows_, first - at));
    FLUX_ASSIGN_OR_RETURN(Rows passed, next(cursor_.get(), some));
    if (passed_.emplace(at, std::move(passed)).second) passed_rows_ += some;
    for (; passed_rows_ > kPassedRows; passed_.erase(passed_.begin()))
      passed_rows_ -= passed_.begin()->second->size;
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
Result<RowSource::Rows> RowSource::read_anywhere(uint64_t first, uint32_t rows) {
  std::unique_ptr<ParquetCursor> cursor = take_idle(first);
  if (cursor == nullptr) {
    FLUX_ASSIGN_OR_RETURN(cursor, ParquetCursor::start(file_, map_.wanted, first));
  }
  auto out = next(cursor.get(), rows);
  if (out.is_ok()) put_idle(std::move(cursor));
  return out;
}

Result<std::shared_ptr<const Batch>> RowSource::read(uint64_t first, uint32_t rows) {
  if (!kept_) return read_anywhere(first, rows);
  const std::lock_guard lock(mutex_);
  if (const auto at = passed_.find(first); at != passed_.end() && at->second->size == rows) {
    Rows out = at->second;
    passed_rows_ -= rows;
    passed_.erase(at);
    return out;
  }
  auto out = read_kept(first, rows);
  if (!out.is_ok() || first + rows == file_->rows()) cursor_.reset();
  return out;
}

}  // namespace flux
