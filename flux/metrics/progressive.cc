#include "flux/metrics/progressive.h"

#include <algorithm>

#include "flux/metrics/score_runs.h"

namespace flux {
void BinaryMetrics::make_room() {
  if (!positive_.empty()) return;
  positive_.resize(kScoreBuckets);
  negative_.resize(kScoreBuckets);
}

void BinaryMetrics::add(const float* labels, const float* predictions, uint32_t n,
                        double loss_sum) {
  make_room();
  uint64_t positives = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t bucket = score_bucket(predictions[i]);
    const bool positive = labels[i] > 0.5F;
    ++(positive ? positive_ : negative_)[bucket];
    positives += positive ? 1 : 0;
  }
  positives_ += positives;
  negatives_ += n - positives;
  loss_sum_ += loss_sum;
}

void BinaryMetrics::merge(const BinaryMetrics& other) {
  if (other.positive_.empty()) return;
  make_room();
  for (uint32_t i = 0; i < kScoreBuckets; ++i) {
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

double BinaryMetrics::auc() const {
  AucSum sum;
  for (size_t i = 0; i < positive_.size(); ++i) sum.add(positive_[i], negative_[i]);
  return sum.value();
}

double BinaryMetrics::log_loss() const {
  return examples() == 0 ? 0 : loss_sum_ / static_cast<double>(examples());
}

double BinaryMetrics::ctr() const {
  return examples() == 0 ? 0 : static_cast<double>(positives_) / static_cast<double>(examples());
}

}  // namespace flux
