#include "flux/nn/auc.h"

#include <algorithm>
#include <cmath>

namespace flux {

BinaryMetrics::BinaryMetrics() : positive_(kBuckets), negative_(kBuckets) {}

void BinaryMetrics::add(const float* labels, const float* predictions, uint32_t n,
                        double loss_sum) {
  uint64_t positives = 0;
  for (uint32_t i = 0; i < n; ++i) {
    // A NaN fails the comparison and counts as 0: the loss will tell.
    const float p = predictions[i] > 0.0F ? std::min(predictions[i], 1.0F) : 0.0F;
    const auto bucket =
        std::min(static_cast<uint32_t>(p * static_cast<float>(kBuckets)), kBuckets - 1);
    const bool positive = labels[i] > 0.5F;
    ++(positive ? positive_ : negative_)[bucket];
    positives += positive ? 1 : 0;
  }
  positives_ += positives;
  negatives_ += n - positives;
  loss_sum_ += loss_sum;
}

void BinaryMetrics::merge(const BinaryMetrics& other) {
  for (uint32_t i = 0; i < kBuckets; ++i) {
    positive_[i] += other.positive_[i];
    negative_[i] += other.negative_[i];
  }
  positives_ += other.positives_;
  negatives_ += other.negatives_;
  loss_sum_ += other.loss_sum_;
}

void BinaryMetrics::clear() {
  std::fill(positive_.begin(), positive_.end(), 0U);
  std::fill(negative_.begin(), negative_.end(), 0U);
  positives_ = negatives_ = 0;
  loss_sum_ = 0;
}

void BinaryMetrics::to_sparse(std::vector<uint32_t>* bucket, std::vector<uint32_t>* positive,
                              std::vector<uint32_t>* negative) const {
  for (uint32_t b = 0; b < kBuckets; ++b) {
    if (positive_[b] == 0 && negative_[b] == 0) continue;
    bucket->push_back(b);
    positive->push_back(positive_[b]);
    negative->push_back(negative_[b]);
  }
}

bool BinaryMetrics::add_sparse(std::span<const uint32_t> bucket, std::span<const uint32_t> positive,
                               std::span<const uint32_t> negative, double loss_sum) {
  if (positive.size() != bucket.size() || negative.size() != bucket.size()) return false;
  if (!std::isfinite(loss_sum)) return false;
  for (size_t i = 0; i < bucket.size(); ++i)
    if (bucket[i] >= kBuckets || (i > 0 && bucket[i] <= bucket[i - 1])) return false;
  for (size_t i = 0; i < bucket.size(); ++i) {
    positive_[bucket[i]] += positive[i];
    negative_[bucket[i]] += negative[i];
    positives_ += positive[i];
    negatives_ += negative[i];
  }
  loss_sum_ += loss_sum;
  return true;
}

double BinaryMetrics::auc() const {
  if (positives_ == 0 || negatives_ == 0) return 0.5;
  // Pairs (positive, negative) ranked right; within a bucket half of them.
  double right = 0, negatives_below = 0;
  for (uint32_t i = 0; i < kBuckets; ++i) {
    const double negatives = negative_[i];
    right += positive_[i] * (negatives_below + 0.5 * negatives);
    negatives_below += negatives;
  }
  return right / (static_cast<double>(positives_) * static_cast<double>(negatives_));
}

double BinaryMetrics::log_loss() const {
  return examples() == 0 ? 0 : loss_sum_ / static_cast<double>(examples());
}

double BinaryMetrics::ctr() const {
  return examples() == 0 ? 0 : static_cast<double>(positives_) / static_cast<double>(examples());
}

}  // namespace flux
