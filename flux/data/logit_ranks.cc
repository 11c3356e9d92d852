#include "flux/data/logit_ranks.h"

#include <algorithm>

namespace flux {
namespace {

constexpr uint32_t kBuckets = 1U << 18;
constexpr double kRange = 16;  // logits beyond are counted at the ends

double share(double won, double pairs) {
  return pairs == 0 ? 0.5 : won / pairs;
}

}  // namespace

LogitRanks::LogitRanks(bool exact) : exact_(exact) {
  if (exact_) return;
  for (auto& counts : histogram_) counts.resize(kBuckets);
}

void LogitRanks::add(double logit, bool label) {
  if (exact_) {
    logits_[label].push_back(logit);
  } else {
    const double at = (logit + kRange) * (kBuckets / (2 * kRange));
    ++histogram_[label][static_cast<size_t>(std::clamp(at, 0.0, kBuckets - 1.0))];
  }
}

void LogitRanks::merge(const LogitRanks& other) {
  for (size_t label = 0; label < 2; ++label) {
    const auto& from = other.logits_[label];
    logits_[label].insert(logits_[label].end(), from.begin(), from.end());
    for (size_t i = 0; i < histogram_[label].size(); ++i)
      histogram_[label][i] += other.histogram_[label][i];
  }
}

double LogitRanks::auc() {
  return exact_ ? sorted_auc() : histogram_auc();
}

double LogitRanks::sorted_auc() {
  auto& [negative, positive] = logits_;
  std::sort(negative.begin(), negative.end());
  std::sort(positive.begin(), positive.end());
  uint64_t won_twice = 0;  // a tie is half a win
  size_t below = 0, not_above = 0;
  for (const double logit : positive) {
    while (below < negative.size() && negative[below] < logit) ++below;
    while (not_above < negative.size() && negative[not_above] <= logit) ++not_above;
    won_twice += below + not_above;
  }
  return share(0.5 * static_cast<double>(won_twice),
               static_cast<double>(positive.size()) * static_cast<double>(negative.size()));
}

double LogitRanks::histogram_auc() const {
  double won = 0, negatives = 0, positives = 0;
  for (uint32_t i = 0; i < kBuckets; ++i) {
    const auto below = static_cast<double>(histogram_[0][i]);
    const auto here = static_cast<double>(histogram_[1][i]);
    won += here * (negatives + 0.5 * below);
    negatives += below;
    positives += here;
  }
  return share(won, positives * negatives);
}

}  // namespace flux
