// ColumnCursor: the values of one column, row after row, over the borders of row groups.
//
// Threads: one. Failure: exceptions of Arrow (parquet::ParquetException), which stop at plugin.cc.
#pragma once

#include <cstdint>
#include <memory>

#include <parquet/column_reader.h>

#include "flux/data/parquet/plugin_api.h"
#include "plugins/parquet/column_memory.h"
#include "plugins/parquet/columns.h"
#include "plugins/parquet/dictionary_memory.h"

namespace flux::parquet_plugin {

class ColumnCursor {
 public:
  virtual ~ColumnCursor() = default;
  // Goes to row `row` of the row group of which `pages` are this column, from the first row on.
  virtual void seek(std::unique_ptr<::parquet::PageReader> pages, int64_t row) = 0;
  // From here on `rows` rows are read into `memory`, which outlives that.
  virtual void read_into(ColumnMemory* memory, int64_t rows) = 0;
  // Adds the next `rows` rows of this row group, which has them.
  virtual void read(int64_t rows) = 0;
  // What is in the memory.
  virtual Values values() const = 0;
};

// `leaf`, `pool` and `dictionaries` outlive the cursor.
std::unique_ptr<ColumnCursor> make_cursor(const FoundColumn& column,
                                          const ::parquet::ColumnDescriptor& leaf, As as,
                                          ::arrow::MemoryPool* pool, DictionaryMemory* dictionaries,
                                          HashText hash);

}  // namespace flux::parquet_plugin
