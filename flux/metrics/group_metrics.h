// Metrics inside groups (users, page views): GAUC, mean AUC, precision and recall among the first
// k. A group's examples are ranked by prediction; groups are added up by rising id, so the result
// depends on the records alone. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "flux/metrics/records.h"

namespace flux {

struct AtK {
  uint32_t k = 0;
  double precision = 0, recall = 0;
};

struct GroupValues {
  uint64_t groups = 0;
  uint64_t ranked = 0;  // groups with both classes
  // Over those: by impressions (GAUC, also called WUAUC), and each group alike.
  std::optional<double> gauc, uauc;
  // Precision: positives among the first k (or all, if there are fewer), averaged over groups.
  // Recall: share of a group's positives among the first k, averaged over groups with positives.
  // Examples tied at the k-th place count by their share. Where examples have weights, both are
  // shares of weight; k counts examples.
  std::vector<AtK> at;
};

GroupValues group_values(const ScoredBatch& records, std::span<const uint32_t> at);

}  // namespace flux
