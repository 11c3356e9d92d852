// Binary classification metrics that merge exactly: integer histograms of predictions by class.
// AUC is the trapezoid over kBuckets buckets of the probability; log loss is summed exactly in
// double per histogram. Not thread-safe; one per thread, merged when read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "flux/base/status.h"

namespace flux {

// Counts of predictions by bucket and class, only buckets that are not empty, rising; equal
// lengths.
struct SparseHistogram {
  std::vector<uint32_t> bucket, positive, negative;
};

class BinaryMetrics {
 public:
  static constexpr uint32_t kBuckets = 1U << 17;
  void add(const float* labels, const float* predictions, uint32_t n, double loss_sum);
  void merge(const BinaryMetrics& other);
  void clear();
  static SparseHistogram sparse(const float* labels, const float* predictions, uint32_t n);
  // Adds what sparse() made, perhaps elsewhere; kInvalid (and nothing added) if it could not have.
  Status add_sparse(std::span<const uint32_t> bucket, std::span<const uint32_t> positive,
                    std::span<const uint32_t> negative, double loss_sum);
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
