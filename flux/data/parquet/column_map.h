// ColumnMap: which columns of a Parquet file are the labels, slots and numbers of a job, by name.
//
// `weight` has the weights, `sid` the groups when the job's group is sid, NAME_values the values of
// the keys of slot NAME. Columns that the job does not name are not read.
// Plain values. Failure: kInvalid with path, column, its type, what is allowed, and near names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/data/dataset.h"
#include "flux/data/parquet/plugin_api.h"

namespace flux {

struct ColumnMap {
  static constexpr uint32_t kNone = UINT32_MAX;
  std::vector<parquet_plugin::Wanted> wanted;
  // Places in `wanted`.
  std::vector<uint32_t> labels, dense, slots, values;
  uint32_t weight = kNone, group = kNone;
};

Result<ColumnMap> map_columns(const std::string& path,
                              const std::vector<parquet_plugin::Column>& columns,
                              const DataOptions& options);

// What a job for such a file could say, for tools without one: a column `label` (or several that
// begin so), whole numbers and texts as slots, others as dense features. *note names the columns
// that cannot be read; empty: there is none.
Result<DataOptions> guess_parquet_options(const std::string& path,
                                          const std::vector<parquet_plugin::Column>& columns,
                                          std::string* note);

}  // namespace flux
