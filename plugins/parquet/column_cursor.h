// ColumnCursor: the values of one column, row after row, over the borders of row groups.
//
// Threads: one. Failure: exceptions of Arrow (parquet::ParquetException), which stop at plugin.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <parquet/column_reader.h>

#include "flux/data/parquet/plugin_api.h"
#include "plugins/parquet/columns.h"

namespace flux::parquet_plugin {

class ColumnCursor {
 public:
  virtual ~ColumnCursor() = default;
  // Goes to row `row` of the row group of which `column` has the values from the first row on.
  virtual void seek(std::shared_ptr<::parquet::ColumnReader> column, int64_t row) = 0;
  // Adds the next `rows` rows of this row group, which has them, behind those that were read since
  // clear().
  virtual void read(int64_t rows) = 0;
  virtual void clear() = 0;
  virtual Values values() = 0;
};

std::unique_ptr<ColumnCursor> make_cursor(const FoundColumn& column,
                                          const ::parquet::ColumnDescriptor& leaf, As as,
                                          HashText hash);

}  // namespace flux::parquet_plugin
