// Metrics of a ranking: AUC, bucket error, calibration, over examples grouped by equal prediction.
//
// A ScoreRun is the weight of each class at one prediction; runs rise. Exact runs come from
// Records; runs of buckets (bucket_counts.h) give the same functions for what was not kept one by
// one. Pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "flux/metrics/records.h"

namespace flux {

constexpr uint32_t kScoreBuckets = 1U << 17;  // of equal width over [0, 1]
// A prediction's bucket; what is outside [0, 1], or no number, counts as the nearest end or 0.
inline uint32_t score_bucket(float prediction) {
  const float p = prediction > 0.0F ? std::min(prediction, 1.0F) : 0.0F;
  return std::min(static_cast<uint32_t>(p * static_cast<float>(kScoreBuckets)), kScoreBuckets - 1);
}

struct ScoreRun {
  double prediction = 0;
  double positive = 0, negative = 0;  // weights; positive: label above 0.5
};

// One per distinct prediction, rising; weights are added in one fixed order.
std::vector<ScoreRun> runs_of(const ScoredBatch& records);

// The area under the ROC curve, fed with runs in rising order.
class AucSum {
 public:
  void add(double positive, double negative) {
    right_ += positive * (negatives_ + 0.5 * negative);  // pairs ranked right, ties by half
    positives_ += positive;
    negatives_ += negative;
  }
  bool both_classes() const { return positives_ > 0 && negatives_ > 0; }
  // 0.5 unless both classes were seen.
  double value() const { return both_classes() ? right_ / positives_ / negatives_ : 0.5; }

 private:
  double right_ = 0, positives_ = 0, negatives_ = 0;
};
AucSum auc_of(std::span<const ScoreRun> runs);

// How far predicted and actual rates lie apart where enough was seen to tell. Buckets are walked
// from 0; a stretch begins when the bucket's lower end has moved more than 0.01 from the last
// beginning, ends (and counts) when sqrt((1-p)/(p*n)) < 0.05 for its n impressions and mean lower
// end p, and then has the error |actual/p - 1|. The mean over stretches by impressions; nothing if
// none counts.
std::optional<double> bucket_error(std::span<const ScoreRun> runs);

struct CalibrationBin {
  double weight = 0;
  double predicted = 0, actual = 0;  // mean prediction, share of positives
};
// At most `bins` bins of about equal weight, rising; equal predictions stay together.
std::vector<CalibrationBin> calibration(std::span<const ScoreRun> runs, uint32_t bins);
// Mean |predicted - actual| over bins, by weight.
double calibration_error(std::span<const CalibrationBin> bins);

}  // namespace flux
