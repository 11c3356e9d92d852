// BinaryMetrics: AUC and means while training, each prediction made before its example was learnt.
// Cheap rather than exact: weights in buckets of the probability (2^17 need 2 MB), AUC by the
// trapezoid over them, within about 1e-5; held-out data has exact metrics (metric_set.h). What has
// no meaning there has none here, and weights count alike. Sums are integers, so merging depends on
// no order.
// Not thread-safe; one per thread, merged when read.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "flux/base/bytes.h"
#include "flux/metrics/metric_values.h"
#include "flux/metrics/score_runs.h"
#include "flux/metrics/score_sums.h"

namespace flux {

class BinaryMetrics {
 public:
  // `buckets`: a power of two, at most kScoreBuckets.
  explicit BinaryMetrics(uint32_t buckets = kScoreBuckets) : buckets_(buckets) {}

  void add(const ScoredBatch& batch);
  void merge(const BinaryMetrics& other);  // with as many buckets
  uint32_t buckets() const { return buckets_; }
  uint64_t examples() const { return sums_.examples; }
  // Nothing: one class only, or labels and predictions that are no classes and probabilities.
  std::optional<double> auc() const;
  MetricValues values() const;

  // Buckets that are not empty, and the sums.
  void put(ByteWriter* out) const;
  // False: not such bytes; then the object is of no use.
  bool get(ByteReader* in);

 private:
  void make_room();
  void weigh();  // from counts to units
  uint32_t buckets_;
  std::vector<uint64_t> positive_, negative_;  // empty until something is added
  bool weighted_ = false;  // buckets are in units of 2^-20; else every weight was 1, and they count
  ScoreSums sums_;
};

}  // namespace flux
