// BucketCounts: weights of predictions by bucket and class, for more examples than are kept one by
// one. Integers (weights in units of 2^-20), so sums do not depend on their order.
// 4 MB once something is added; a value, not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "flux/metrics/records.h"
#include "flux/metrics/score_runs.h"

namespace flux {

class BucketCounts {
 public:
  void add(const ScoredBatch& batch);
  void merge(const BucketCounts& other);
  // One per bucket that is not empty, at its middle.
  std::vector<ScoreRun> runs() const;

 private:
  using Units = unsigned __int128;
  void make_room();
  std::vector<Units> positive_, negative_;  // empty until something is added
};

}  // namespace flux
