// Columns: what stands where in the lines of formats that go by place (multislot, csv), from the
// names of data.columns.
//
// A name is that of a label, slot or dense feature, or FIRST..LAST (the dense features from one to
// another, in the order of data.dense), or one of: `dense` (all dense features), `weight`, `id`
// (the example's name), `sid` (search or session), `logkey` (Paddle's, with the search in
// characters 17 to 32), `-` (not read). Plain values and pure functions.
// Failure: kInvalid that names the column, and what it should be.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/data/dataset.h"

namespace flux {

struct LineColumn {
  enum Kind : uint8_t { kLabel, kSlot, kDense, kAllDense, kWeight, kId, kSid, kLogKey, kSkip };
  Kind kind = kSkip;
  uint32_t index = 0;  // of the label, slot or dense feature
  std::string name;
  uint32_t width = 1;  // dense features from `index` on
};

// Every label, slot and dense feature of `options` has to be among `names`, once; weight if and
// only if examples have weights.
Result<std::vector<LineColumn>> columns_of(const std::vector<std::string>& names,
                                           const DataOptions& options);

// Where a job names no columns: labels, weight, sid, slots, dense.
std::vector<std::string> default_columns(const DataOptions& options);

std::string ordinal(size_t n);  // 1 -> "1st"

}  // namespace flux
