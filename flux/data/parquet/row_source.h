// RowSource: the rows of one Parquet file from any place, in the order of the file: their columns,
// and as a batch.
//
// A file whose row groups are small is read from the begin of the nearest, or on from where a block
// before ended; others by a cursor that stays open, with the blocks that it passed over kept for
// those who come a little late. Once it goes on from block to block it reads several at once, as
// each turn of a column has to bring its dictionary into the caches again.
// Memory: kPassedRows are kept. Of columns without lists, which alone are read ahead, kAheadBytes
// are read at once (up to twice that where rows are null), which stay until the last of their
// blocks is done with; two such reads more than kPassedRows are kept. After keep_less() nothing is,
// but for a file of at most kPassedRows.
// Threads: any; reads through the kept cursor wait for each other. Failure: as ParquetFile.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
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
  static constexpr uint64_t kPassedRows = 128 << 10;  // that are kept
  static constexpr uint64_t kAheadBytes = 32 << 20;   // of all columns, in one read of some blocks
  using Columns = std::shared_ptr<const ParquetColumns>;
  // Some rows of what was read at once.
  struct Part {
    Columns columns;
    uint32_t from = 0, rows = 0;
  };
  // Rows from `first` on. Behind them others up to row `end` may be read as well, the next blocks
  // as a whole: at most ahead_rows() with these.
  Result<Part> read(uint64_t first, uint32_t rows, uint64_t end);
  uint64_t ahead_rows() const { return ahead_rows_; }
  // Others are read now; rows of a large file are found again, by another cursor.
  void keep_less();
  // The rows that read() gave, for those who want them in another order; of those of `block` that
  // were set aside nothing is asked.
  Result<std::shared_ptr<const Batch>> rows_of(const Part& part, const DataBlock& block) const;
  const std::shared_ptr<const RowLayout>& layout() const { return layout_; }
  const ParquetFile& file() const { return *file_; }

 private:
  using ColumnsPool = std::shared_ptr<ReusePool<ParquetColumns>>;
  ColumnsPool make_pool(size_t free_max) const;
  Result<Part> read_kept(uint64_t first, uint32_t rows, uint64_t end);
  std::optional<Part> read_ahead(uint64_t first, uint32_t rows, uint64_t end);
  Result<Part> read_anywhere(uint64_t first, uint32_t rows);
  Status pass_over(uint64_t first);
  void keep(uint64_t first, Columns columns, uint32_t left);
  void keep_at_most(uint64_t rows);
  std::optional<Part> find_kept(uint64_t first, uint32_t rows);
  void end_cursor();
  std::unique_ptr<ParquetCursor> take_idle(uint64_t row);
  void put_idle(std::unique_ptr<ParquetCursor> cursor);

  const std::shared_ptr<const ParquetFile> file_;
  const std::shared_ptr<const RowLayout> layout_;
  const uint32_t block_rows_;  // of a whole block, by which the cursor goes on
  const bool kept_;
  const uint64_t ahead_rows_;  // 0: none
  const ColumnsPool columns_;
  const std::shared_ptr<ReusePool<Batch>> batches_;
  static constexpr size_t kIdleMax = 4;
  std::mutex mutex_;
  std::vector<std::unique_ptr<ParquetCursor>> idle_;  // under mutex_, as the rest; oldest first
  std::unique_ptr<ParquetCursor> cursor_;
  ColumnsPool ahead_;          // for what is read at once; another for each cursor
  bool ahead_failed_ = false;  // from here on blocks are read one by one
  struct Kept {
    Columns columns;
    uint32_t left;  // rows that nobody asked for
  };
  std::map<uint64_t, Kept> passed_;  // by first row
  uint64_t passed_rows_ = 0;
};

}  // namespace flux
