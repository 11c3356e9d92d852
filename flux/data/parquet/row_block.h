// Rows of a Parquet file as one Batch, in the order of the file, from the columns of a cursor.
//
// A missing label is NaN, a missing weight 1, a missing number 0; a slot without a value has no
// key. Pure but for the memory of `out`, which is used again. Failure: kInvalid with path and
// record when a slot has not as many values as keys.
#pragma once

#include <string>

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

// `first`: number of the first row in the file, from 0, for messages.
Status rows_to_batch(const RowReading& reading, const ColumnMap& map,
                     const parquet_plugin::Values* columns, const std::string& path, uint64_t first,
                     uint32_t rows, Batch* out);

}  // namespace flux
