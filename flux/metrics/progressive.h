// BinaryMetrics: AUC and mean loss while training, each prediction made before its example was
// learnt. Cheap rather than exact: counts in 2^17 buckets of the probability (1 MB), AUC by the
// trapezoid over them, within about 1e-5; held-out data has exact metrics (metric_set.h).
// Not thread-safe; one per thread, merged when read; merging is exact.
#pragma once

#include <cstdint>
#include <vector>

namespace flux {

class BinaryMetrics {
 public:
  void add(const float* labels, const float* predictions, uint32_t n, double loss_sum);
  void merge(const BinaryMetrics& other);
  void clear();
  uint64_t examples() const { return positives_ + negatives_; }
  // 0.5 when only one class was seen.
  double auc() const;
  double log_loss() const;  // mean
  double ctr() const;       // share of positives
  double loss_sum() const { return loss_sum_; }

 private:
  void make_room();
  std::vector<uint32_t> positive_, negative_;  // empty until something is added
  uint64_t positives_ = 0, negatives_ = 0;
  double loss_sum_ = 0;
};

}  // namespace flux
