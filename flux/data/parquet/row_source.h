// RowSource: the rows of one Parquet file from any place, in the order of the file: their columns,
// and as a batch.
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
#include "flux/data/parquet/reuse_pool.h"
#include "flux/data/parquet/row_block.h"

namespace flux {

class RowSource {
 public:
  RowSource(std::shared_ptr<const ParquetFile> file, ColumnMap map, const DataOptions& options,
            uint32_t block_rows);
  // Whether a row group has so many blocks that each should not be read from its begin.
  static bool keeps_cursor(const ParquetFile& file, uint64_t block_rows) {
    return file.group_rows_most() > 2 * block_rows;
  }
  static constexpr uint64_t kPassedRows = 128 << 10;  // that are kept at most
  using Columns = std::shared_ptr<const ParquetColumns>;
  Result<Columns> read(uint64_t first, uint32_t rows);
  // The rows of columns that read() gave, for those who want them in another order; of those of
  // `block` that were set aside nothing is asked.
  Result<std::shared_ptr<const Batch>> rows_of(const ParquetColumns& columns,
                                               const DataBlock& block) const;
  const std::shared_ptr<const RowLayout>& layout() const { return layout_; }
  const ParquetFile& file() const { return *file_; }

 private:
  Result<Columns> next(ParquetCursor* cursor, uint32_t rows) const;
  Result<Columns> read_kept(uint64_t first, uint32_t rows);
  Result<Columns> read_anywhere(uint64_t first, uint32_t rows);
  std::unique_ptr<ParquetCursor> take_idle(uint64_t row);
  void put_idle(std::unique_ptr<ParquetCursor> cursor);

  const std::shared_ptr<const ParquetFile> file_;
  const std::shared_ptr<const RowLayout> layout_;
  const uint32_t block_rows_;  // of a whole block, by which the cursor goes on
  const bool kept_;
  const std::shared_ptr<ReusePool<ParquetColumns>> columns_;
  const std::shared_ptr<ReusePool<Batch>> batches_;
  static constexpr size_t kIdleMax = 4;
  std::mutex mutex_;
  std::vector<std::unique_ptr<ParquetCursor>> idle_;  // under mutex_, as the rest; oldest first
  std::unique_ptr<ParquetCursor> cursor_;
  std::map<uint64_t, Columns> passed_;  // by first row
  uint64_t passed_rows_ = 0;
};

}  // namespace flux
