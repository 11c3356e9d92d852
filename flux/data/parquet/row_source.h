// RowSource: the rows of one Parquet file from any place, as batches in the order of the file.
//
// A file whose row groups are small is read from the begin of the nearest, or on from where a block
// before ended; others by a cursor that stays open, with the blocks that it passed over kept for
// those who come a little late.
// Threads: any; reads through the kept cursor wait for each other. Failure: as ParquetFile.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "flux/data/parquet/parquet_file.h"
#include "flux/data/parquet/row_block.h"

namespace flux {

// Batches that are done with, to be filled again: fresh pages cost as much as reading.
class BatchPool : public std::enable_shared_from_this<BatchPool> {
 public:
  // Comes back by itself; what is in it is of its last use.
  std::shared_ptr<Batch> take();

 private:
  static constexpr size_t kFreeMax = 4;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Batch>> free_;
};

class RowSource {
 public:
  RowSource(std::shared_ptr<const ParquetFile> file, ColumnMap map, const DataOptions& options,
            uint32_t block_rows);
  // Whether a row group has so many blocks that each should not be read from its begin.
  static bool keeps_cursor(const ParquetFile& file, uint64_t block_rows) {
    return file.group_rows_most() > 2 * block_rows;
  }
  static constexpr uint64_t kPassedRows = 128 << 10;  // that are kept at most
  Result<std::shared_ptr<const Batch>> read(uint64_t first, uint32_t rows);
  const ParquetFile& file() const { return *file_; }

 private:
  using Rows = std::shared_ptr<const Batch>;
  Result<Rows> next(ParquetCursor* cursor, uint32_t rows) const;
  Result<Rows> read_kept(uint64_t first, uint32_t rows);
  Result<Rows> read_anywhere(uint64_t first, uint32_t rows);
  std::unique_ptr<ParquetCursor> take_idle(uint64_t row);
  void put_idle(std::unique_ptr<ParquetCursor> cursor);

  const std::shared_ptr<const ParquetFile> file_;
  const ColumnMap map_;
  const RowReading reading_;
  const uint32_t block_rows_;    // of a whole block, by which the cursor goes on
  const uint32_t rows_at_once_;  // from columns to rows
  const bool kept_;
  const std::shared_ptr<BatchPool> memory_ = std::make_shared<BatchPool>();
  static constexpr size_t kIdleMax = 4;
  std::mutex mutex_;
  std::vector<std::unique_ptr<ParquetCursor>> idle_;  // under mutex_, as the rest; oldest first
  std::unique_ptr<ParquetCursor> cursor_;
  std::map<uint64_t, Rows> passed_;  // by first row
  uint64_t passed_rows_ = 0;
};

}  // namespace flux
