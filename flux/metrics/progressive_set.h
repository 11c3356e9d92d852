// ProgressiveSet: what trainers saw while training, by phase, head and slice; and its bytes.
//
// Whole heads have 2^17 buckets, slices 2^12 (AUC within about 1e-4). Merging is exact: counts and
// sums are integers, and slices beyond the bound go to "other" the same way in every order.
// Not thread-safe; one per trainer thread, merged when read. Failure: get() refuses what is not
// such bytes, and takes nothing of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "flux/base/status.h"
#include "flux/metrics/progressive.h"
#include "flux/metrics/slices.h"

namespace flux {

constexpr uint32_t kSliceBuckets = 1U << 12;
constexpr uint32_t kProgressiveKeysMax = 4096;

// Where a head stands in the job.
struct HeadPlace {
  uint32_t phase = 0, head = 0;  // numbers of the network and, in it, of the head
  auto operator<=>(const HeadPlace&) const = default;
};

class ProgressiveSet {
 public:
  // At most `slice_values` values of a slot are told apart; a set to merge others into needs not
  // say how many: it takes theirs.
  explicit ProgressiveSet(uint32_t slice_values = 0) : slice_values_(slice_values) {}

  void add(const MetricKey& key, HeadPlace place, const ScoredBatch& batch);
  // The same examples by slices, of a head that add() has seen.
  void add_slices(MetricKey key, const ScoredBatch& batch, std::span<const Slice> slices);
  void merge(const ProgressiveSet& other);
  bool empty() const { return by_key_.empty(); }
  // Of the first head of a phase's network; nothing: it has none, or that has no AUC.
  std::optional<double> auc(uint32_t phase) const;
  // Phase after phase, head after head as the network has them, each with its slices. Examples and
  // loss are those of the networks, whether they have labels or not.
  MetricReport report(uint64_t examples = 0, double loss_sum = 0) const;

  std::string encode() const;
  static Result<ProgressiveSet> decode(std::string_view bytes);

 private:
  uint32_t slice_values_;
  std::map<MetricKey, BinaryMetrics> by_key_;
  std::map<HeadPlace, MetricKey> heads_;
};

}  // namespace flux
