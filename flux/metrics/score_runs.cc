#include "flux/metrics/score_runs.h"

#include <algorithm>
#include <cmath>

namespace flux {
namespace {

struct Scored {
  float prediction, weight;
  bool positive;
  auto operator<=>(const Scored&) const = default;
};

constexpr double kStretchSpan = 0.01;
constexpr double kStretchCertain = 0.05;

}  // namespace

std::vector<ScoreRun> runs_of(const ScoredBatch& records) {
  std::vector<Scored> rows(records.predictions.size());
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i] = {records.predictions[i] + 0.0F,  // no -0
               records.weights.empty() ? 1.0F : records.weights[i], records.labels[i] > 0.5F};
  std::sort(rows.begin(), rows.end());
  std::vector<ScoreRun> runs;
  for (const Scored& row : rows) {
    if (runs.empty() || runs.back().prediction != static_cast<double>(row.prediction))
      runs.push_back({row.prediction, 0, 0});
    (row.positive ? runs.back().positive : runs.back().negative) += row.weight;
  }
  return runs;
}

AucSum auc_of(std::span<const ScoreRun> runs) {
  AucSum sum;
  for (const ScoreRun& run : runs) sum.add(run.positive, run.negative);
  return sum;
}

std::optional<double> bucket_error(std::span<const ScoreRun> runs) {
  double begin = -1, shown = 0, predicted = 0, clicked = 0;  // of the stretch
  double error_sum = 0, counted = 0;
  size_t next = 0;
  for (uint32_t bucket = 0; bucket < kScoreBuckets; ++bucket) {
    const double low = static_cast<double>(bucket) / kScoreBuckets;
    if (std::fabs(low - begin) > kStretchSpan) {
      begin = low;
      shown = predicted = clicked = 0;
    }
    for (; next < runs.size() && score_bucket(static_cast<float>(runs[next].prediction)) == bucket;
         ++next) {
      const double weight = runs[next].positive + runs[next].negative;
      shown += weight;
      predicted += low * weight;
      clicked += runs[next].positive;
    }
    if (!(shown > 0 && predicted > 0)) continue;
    const double p = predicted / shown;
    if (!(std::sqrt((1 - p) / (p * shown)) < kStretchCertain)) continue;
    error_sum += std::fabs(clicked / shown / p - 1) * shown;
    counted += shown;
    begin = -1;
  }
  if (!(counted > 0)) return std::nullopt;
  return error_sum / counted;
}

std::vector<CalibrationBin> calibration(std::span<const ScoreRun> runs, uint32_t bins) {
  double total = 0;
  for (const ScoreRun& run : runs) total += run.positive + run.negative;
  std::vector<CalibrationBin> out;
  if (!(total > 0)) return out;
  double below = 0;
  uint32_t open = bins;  // which one out.back() is
  for (const ScoreRun& run : runs) {
    const double weight = run.positive + run.negative;
    if (!(weight > 0)) continue;
    const auto bin = std::min(bins - 1, static_cast<uint32_t>(bins * below / total));
    if (bin != open) out.emplace_back();
    open = bin;
    out.back().weight += weight;
    out.back().predicted += weight * run.prediction;
    out.back().actual += run.positive;
    below += weight;
  }
  for (CalibrationBin& bin : out) {
    bin.predicted /= bin.weight;
    bin.actual /= bin.weight;
  }
  return out;
}

double calibration_error(std::span<const CalibrationBin> bins) {
  double sum = 0, weight = 0;
  for (const CalibrationBin& bin : bins) {
    sum += bin.weight * std::fabs(bin.predicted - bin.actual);
    weight += bin.weight;
  }
  return weight > 0 ? sum / weight : 0;
}

}  // namespace flux
