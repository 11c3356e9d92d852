// Binary classification metrics that merge exactly: integer histograms of predictions by class.
// AUC is the trapezoid over kBuckets buckets of the probability; log loss is summed exactly in
// double per histogram. Not thread-safe; one per thread, merged when read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace flux {

class BinaryMetrics {
 public:
  static constexpr uint32_t kBuckets = 1U << 17;
  BinaryMetrics();
  void add(const float* labels, const float* predictions, uint32_t n, double loss_sum);
  void merge(const BinaryMetrics& other);
  void clear();
  // The buckets that are not empty, as they travel between roles: equal lengths, rising buckets.
  void to_sparse(std::vector<uint32_t>* bucket, std::vector<uint32_t>* positive,
                 std::vector<uint32_t>* negative) const;
  // Adds what to_sparse() gave elsewhere; false, and nothing added, if it cannot have come from it.
  bool add_sparse(std::span<const uint32_t> bucket, std::span<const uint32_t> positive,
                  std::span<const uint32_t> negative, double loss_sum);
  uint64_t examples() const { return positives_ + negatives_; }
  // 0.5 when only one class was seen.
  double auc() const;
  double log_loss() const;  // mean
  double ctr() const;       // share of positives
  double loss_sum() const { return loss_sum_; }

 private:
  std::vector<uint32_t> positive_, negative_;
  uint64_t positives_ = 0, negatives_ = 0;
  double loss_sum_ = 0;
};

}  // namespace flux
