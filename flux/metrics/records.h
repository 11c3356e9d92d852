// Records: predictions with their labels, weights and groups, kept one by one in columns.
//
// What is computed from them first puts them into one fixed order, so it depends on which records
// there are and never on who brought them or when. Weights cost memory only if one is not 1,
// groups only if given. Plain values; not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "flux/base/status.h"

namespace flux {

constexpr float kWeightMax = 1U << 20;

// Examples of equal standing: spans of one length. `weights` may be empty (all 1), `groups` too
// (no groups: a user, a page view, ...).
struct ScoredBatch {
  std::span<const float> predictions, labels;
  std::span<const float> weights;
  std::span<const uint64_t> groups;
  bool class_numbers = false;  // predictions and labels are numbers of classes, not rates

  float weight(size_t i) const { return weights.empty() ? 1.0F : weights[i]; }
};

// A probability, kept away from 0 and 1 by 2^-52.
inline double never_certain(double prediction) {
  constexpr double kSmallest = std::numeric_limits<double>::epsilon();
  return std::clamp(prediction, kSmallest, 1 - kSmallest);
}
// What a prediction costs: -log of the probability given to what happened. A probability of 0 for
// it costs 36, not infinity.
double log_loss_of(double label, double prediction);

// kInvalid: lengths that differ, a value that is not finite, a weight outside [0, kWeightMax].
Status check_scored(const ScoredBatch& batch);

class Records {
 public:
  void append(const ScoredBatch& batch);  // that check_scored() found good
  ScoredBatch view() const { return {predictions_, labels_, weights_, groups_}; }
  size_t size() const { return predictions_.size(); }
  bool has_groups() const { return !groups_.empty(); }
  void clear();

 private:
  std::vector<float> predictions_, labels_, weights_;
  std::vector<uint64_t> groups_;
};

}  // namespace flux
