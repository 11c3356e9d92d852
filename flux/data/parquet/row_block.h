// Rows of a Parquet file as one Batch, in the order of the file, from the columns that a cursor
// read.
//
// A missing label is NaN, a missing weight 1, a missing number 0; a slot without a value has no
// key. `begin` of the batch is empty when all slots are columns with one key in each row, and no
// key has a value. Pure functions. Failure: kInvalid with path, record and slot when it has not as
// many values as keys; with path and records when they have more keys than a batch can hold.
#pragma once

#include <span>
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
  std::vector<std::string> names;  // of the slots
  std::vector<uint64_t> spaces;    // of each slot, hashed with its keys
  bool raw_keys, weights, values = false;
  int group_slot = -1;
  bool group_column = false;
};

// The same of one file.
struct RowLayout {
  RowReading reading;
  ColumnMap map;
};

// Some rows of columns.
struct RowRange {
  uint32_t from, rows;
  // For messages: that at `from` is record `number` (from 0) of the file.
  const std::string& path;
  uint64_t number;
  // Rows (from 0, rising) that nobody will read: they may be wrong.
  std::span<const uint32_t> bad = {};
};

// `columns`: one for each that the map wants. The memory of `out` is used again.
Status fill_rows(const RowLayout& layout, const parquet_plugin::Values* columns,
                 const RowRange& range, Batch* out);

}  // namespace flux
