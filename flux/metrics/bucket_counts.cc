#include "flux/metrics/bucket_counts.h"

#include <cmath>

namespace flux {
namespace {

constexpr double kUnit = 0x1p-20;

}  // namespace

void BucketCounts::make_room() {
  positive_.resize(kScoreBuckets);
  negative_.resize(kScoreBuckets);
}

void BucketCounts::add(const ScoredBatch& batch) {
  make_room();
  for (size_t i = 0; i < batch.predictions.size(); ++i) {
    const double weight = batch.weights.empty() ? 1 : batch.weights[i];
    auto& side = batch.labels[i] > 0.5F ? positive_ : negative_;
    side[score_bucket(batch.predictions[i])] += static_cast<uint64_t>(std::llround(weight / kUnit));
  }
}

void BucketCounts::merge(const BucketCounts& other) {
  if (other.positive_.empty()) return;
  make_room();
  for (uint32_t i = 0; i < kScoreBuckets; ++i) {
    positive_[i] += other.positive_[i];
    negative_[i] += other.negative_[i];
  }
}

std::vector<ScoreRun> BucketCounts::runs() const {
  std::vector<ScoreRun> runs;
  for (size_t i = 0; i < positive_.size(); ++i)
    if (positive_[i] != 0 || negative_[i] != 0)
      runs.push_back({(static_cast<double>(i) + 0.5) / kScoreBuckets,
                      static_cast<double>(positive_[i]) * kUnit,
                      static_cast<double>(negative_[i]) * kUnit});
  return runs;
}

}  // namespace flux
