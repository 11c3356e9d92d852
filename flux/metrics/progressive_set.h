// ProgressiveSet: what trainers saw while training, by phase, head and slice; and its bytes.
//
// Whole heads have 2^17 buckets, slices 2^12 (AUC within about 1e-4). Merging is exact: counts and
// sums are integers, and slices beyond the bound go to "other" the same way in every order.
// Not thread-safe; one per trainer thread, merged when read. Failure: get() refuses what is not
// such bytes, and takes nothing of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "flux/base/status.h"
#include "flux/metrics/progressive.h"
#include "flux/metrics/slices.h"

namespace flux {

constexpr uint32_t kSliceBuckets = 1U << 12;
constexpr uint32_t kProgressiveKeysMax = 4096;

class ProgressiveSet {
 public:
  // At most `slice_values` values of a slot are told apart; a set to merge others into needs not
  // say how many: it takes theirs.
  explicit ProgressiveSet(uint32_t slice_values = 0) : slice_values_(slice_values) {}

  void add(const MetricKey& key, const float* labels, const float* predictions, uint32_t n,
           double loss_sum);
  // The same examples by slices; the loss of one is that of a probability.
  void add_slices(MetricKey key, const float* labels, const float* predictions,
                  std::span<const Slice> slices);
  void merge(const ProgressiveSet& other);
  bool empty() const { return by_key_.empty(); }
  double auc() const;  // of the first head; 0.5: nothing was seen
  MetricReport report() const;

  std::string encode() const;
  static Result<ProgressiveSet> decode(std::string_view bytes);

 private:
  uint32_t slice_values_;
  std::map<MetricKey, BinaryMetrics> by_key_;
};

}  // namespace flux
