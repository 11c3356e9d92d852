// BinaryMetrics: AUC and means while training, each prediction made before its example was learnt.
// Cheap rather than exact: counts in buckets of the probability (2^17 need 1 MB), AUC by the
// trapezoid over them, within about 1e-5; held-out data has exact metrics (metric_set.h). Sums are
// integers, so merging depends on no order.
// Not thread-safe; one per thread, merged when read.
#pragma once

#include <cstdint>
#include <vector>

#include "flux/base/bytes.h"
#include "flux/metrics/metric_values.h"
#include "flux/metrics/score_runs.h"

namespace flux {

class BinaryMetrics {
 public:
  // `buckets`: a power of two, at most kScoreBuckets.
  explicit BinaryMetrics(uint32_t buckets = kScoreBuckets) : buckets_(buckets) {}

  void add(const float* labels, const float* predictions, uint32_t n, double loss_sum);
  void merge(const BinaryMetrics& other);  // with as many buckets
  void clear();
  uint32_t buckets() const { return buckets_; }
  uint64_t examples() const { return positives_ + negatives_; }
  // 0.5 when only one class was seen.
  double auc() const;
  double log_loss() const;  // mean
  double ctr() const;       // share of positives
  MetricValues values() const;

  // Buckets that are not empty, and the sums.
  void put(ByteWriter* out) const;
  // False: not such bytes; then the object is of no use.
  bool get(ByteReader* in);

 private:
  void make_room();
  uint32_t buckets_;
  std::vector<uint32_t> positive_, negative_;  // empty until something is added
  uint64_t positives_ = 0, negatives_ = 0;
  int64_t loss_ = 0, predicted_ = 0;  // sums, in units of 2^-30
};

}  // namespace flux
