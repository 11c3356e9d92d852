#include "flux/nn/auc.h"

#include <algorithm>
#include <cmath>

namespace flux {
namespace {

uint32_t bucket_of(float prediction) {
  // A NaN fails the comparison and counts as 0: the loss will tell.
  const float p = prediction > 0.0F ? std::min(prediction, 1.0F) : 0.0F;
  constexpr uint32_t kBuckets = BinaryMetrics::kBuckets;
  return std::min(static_cast<uint32_t>(p * static_cast<float>(kBuckets)), kBuckets - 1);
}

}  // namespace

void BinaryMetrics::make_room() {
  if (!positive_.empty()) return;
  positive_.resize(kBuckets);
  negative_.resize(kBuckets);
}

void BinaryMetrics::add(const float* labels, const float* predictions, uint32_t n,
                        double loss_sum) {
  make_room();
  uint64_t positives = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t bucket = bucket_of(predictions[i]);
    const bool positive = labels[i] > 0.5F;
    ++(positive ? positive_ : negative_)[bucket];
    positives += positive ? 1 : 0;
  }
  positives_ += positives;
  negatives_ += n - positives;
  loss_sum_ += loss_sum;
}

SparseHistogram BinaryMetrics::sparse(const float* labels, const float* predictions, uint32_t n) {
  std::vector<uint64_t> marks(n);  // bucket, then class: equal ones lie together when sorted
  for (uint32_t i = 0; i < n; ++i)
    marks[i] = (uint64_t{bucket_of(predictions[i])} << 1) | (labels[i] > 0.5F ? 1U : 0U);
  std::sort(marks.begin(), marks.end());
  SparseHistogram out;
  for (const uint64_t mark : marks) {
    const auto bucket = static_cast<uint32_t>(mark >> 1);
    if (out.bucket.empty() || out.bucket.back() != bucket) {
      out.bucket.push_back(bucket);
      out.positive.push_back(0);
      out.negative.push_back(0);
    }
    ++((mark & 1) != 0 ? out.positive : out.negative).back();
  }
  return out;
}

Status BinaryMetrics::add_sparse(std::span<const uint32_t> bucket,
                                 std::span<const uint32_t> positive,
                                 std::span<const uint32_t> negative, double loss_sum) {
  if (bucket.size() != positive.size() || bucket.size() != negative.size())
    return invalid("a histogram of {} buckets with {} and {} counts", bucket.size(),
                   positive.size(), negative.size());
  if (!std::isfinite(loss_sum)) return invalid("a histogram with a loss of {}", loss_sum);
  for (const uint32_t b : bucket)
    if (b >= kBuckets) return invalid("bucket {} of a histogram of {}", b, kBuckets);
  make_room();
  for (size_t i = 0; i < bucket.size(); ++i) {
    positive_[bucket[i]] += positive[i];
    negative_[bucket[i]] += negative[i];
    positives_ += positive[i];
    negatives_ += negative[i];
  }
  loss_sum_ += loss_sum;
  return Status::ok();
}

void BinaryMetrics::merge(const BinaryMetrics& other) {
  if (other.positive_.empty()) return;
  make_room();
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
