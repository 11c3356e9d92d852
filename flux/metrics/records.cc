#include "flux/metrics/records.h"

#include <algorithm>
#include <cmath>

namespace flux {

double log_loss_of(double label, double prediction) {
  const double p = never_certain(prediction);
  if (label == 1) return -std::log(p);
  if (label == 0) return -std::log1p(-p);
  return -(label * std::log(p) + (1 - label) * std::log1p(-p));
}

Status check_scored(const ScoredBatch& batch) {
  const size_t n = batch.predictions.size();
  if (batch.labels.size() != n || (!batch.weights.empty() && batch.weights.size() != n) ||
      (!batch.groups.empty() && batch.groups.size() != n))
    return invalid("{} predictions with {} labels, {} weights and {} groups", n,
                   batch.labels.size(), batch.weights.size(), batch.groups.size());
  for (size_t i = 0; i < n; ++i)
    if (!std::isfinite(batch.predictions[i]) || !std::isfinite(batch.labels[i]))
      return invalid("a prediction of {} for a label of {}", batch.predictions[i], batch.labels[i]);
  for (const float w : batch.weights)
    if (!(w >= 0 && w <= kWeightMax))
      return invalid("an example's weight of {}: give 0 to {}", w, kWeightMax);
  return Status::ok();
}

void Records::append(const ScoredBatch& batch) {
  const size_t before = size();
  predictions_.insert(predictions_.end(), batch.predictions.begin(), batch.predictions.end());
  labels_.insert(labels_.end(), batch.labels.begin(), batch.labels.end());
  const auto not_one = [](float w) { return w != 1; };
  if (!weights_.empty() || std::any_of(batch.weights.begin(), batch.weights.end(), not_one)) {
    weights_.resize(before, 1);
    weights_.insert(weights_.end(), batch.weights.begin(), batch.weights.end());
    weights_.resize(size(), 1);
  }
  if (!groups_.empty() || !batch.groups.empty()) {
    groups_.resize(before, 0);
    groups_.insert(groups_.end(), batch.groups.begin(), batch.groups.end());
    groups_.resize(size(), 0);
  }
}

void Records::clear() {
  *this = Records();
}

}  // namespace flux
