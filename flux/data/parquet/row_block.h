// RowFiller: rows of a Parquet file as one Batch, in the order of the file, from the columns of a
// cursor, some rows after the other so that the columns of those are in the cache still.
//
// A missing label is NaN, a missing weight 1, a missing number 0; a slot without a value has no
// key. `begin` of the batch is empty when each slot of each row has one key.
// Threads: one. Failure: kInvalid with path and record when a slot has not as many values as keys.
#pragma once

#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/data/batch.h"
#include "flux/data/dataset.h"
#include "flux/data/parquet/column_map.h"

namespace flux {

// How the columns of a job's Parquet files become batches.
struct RowReading {
  explicit RowReading(const DataOptions& options);
  std::vector<uint64_t> spaces;  // of each slot, hashed with its keys
  bool raw_keys, weights, values = false;
  int group_slot = -1;
  bool group_column = false;
};

class RowFiller {
 public:
  // `rows`: all that will be added. The memory of `out` is used again.
  RowFiller(const RowReading& reading, const ColumnMap& map, uint32_t rows, Batch* out);
  // The next `rows` rows. `first`: number of the first one in the file, from 0, for messages.
  Status add(const parquet_plugin::Values* columns, const std::string& path, uint64_t first,
             uint32_t rows);
  // After the last rows.
  void finish();

 private:
  using Values = parquet_plugin::Values;
  void add_numbers(const Values* columns, uint32_t rows);
  void add_groups(const Values* columns, uint32_t rows);
  void add_one_key_each(uint32_t rows);
  void add_any_keys(uint32_t rows);
  void begin_counting();
  Status add_values(const Values* columns, const std::string& path, uint64_t first, uint32_t rows);

  const RowReading& reading_;
  const ColumnMap& map_;
  Batch* const out_;
  std::vector<const Values*> slots_;  // of the rows that are being added
  bool counted_ = false;              // `begin` is filled: some slot had not one key
  uint32_t at_ = 0, keys_ = 0;        // rows and keys so far
};

}  // namespace flux
