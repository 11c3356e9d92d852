// The metrics by plain loops, straight from their definitions and slow: the oracle of the tests.
// Takes rows in any order; nothing is shared with the library.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace flux::plain {

struct Example {
  double prediction, label, weight;
  uint64_t group;
};
using Examples = std::vector<Example>;

// Pairs of a positive and a negative, by the product of their weights.
inline std::optional<double> auc(const Examples& examples) {
  double right = 0, all = 0;
  for (const Example& a : examples)
    for (const Example& b : examples) {
      if (!(a.label > 0.5) || b.label > 0.5) continue;
      const double pair = a.weight * b.weight;
      all += pair;
      if (a.prediction > b.prediction) right += pair;
      if (a.prediction == b.prediction) right += pair / 2;
    }
  return all > 0 ? std::optional(right / all) : std::nullopt;
}

template <typename Value>
double mean(const Examples& examples, Value value) {
  double sum = 0, weight = 0;
  for (const Example& e : examples) {
    sum += e.weight * value(e);
    weight += e.weight;
  }
  return sum / weight;
}

inline double log_loss(const Examples& examples) {
  return mean(examples, [](const Example& e) {
    const double tiny = 2.220446049250313e-16;
    const double p = std::min(std::max(e.prediction, tiny), 1 - tiny);
    return e.label == 1 ? -std::log(p) : -std::log(1 - p);
  });
}

inline std::optional<double> bucket_error(const Examples& examples) {
  constexpr int kBuckets = 131072;
  std::vector<double> show(kBuckets), click(kBuckets);
  for (const Example& e : examples) {
    const int at = std::min(kBuckets - 1, static_cast<int>(e.prediction * kBuckets));
    show[at] += e.weight;
    click[at] += e.weight * e.label;
  }
  double last = -1, n = 0, p_sum = 0, clicks = 0, errors = 0, counted = 0;
  for (int i = 0; i < kBuckets; ++i) {
    const double p = static_cast<double>(i) / kBuckets;
    if (std::abs(p - last) > 0.01) {
      last = p;
      n = p_sum = clicks = 0;
    }
    n += show[i];
    p_sum += p * show[i];
    clicks += click[i];
    if (n == 0 || p_sum == 0) continue;
    const double mean = p_sum / n;
    if (std::sqrt((1 - mean) / (mean * n)) >= 0.05) continue;
    errors += n * std::abs(clicks / n / mean - 1);
    counted += n;
    last = -1;
  }
  if (counted == 0) return std::nullopt;
  return errors / counted;
}

inline std::map<uint64_t, Examples> by_group(const Examples& examples) {
  std::map<uint64_t, Examples> groups;
  for (const Example& e : examples) groups[e.group].push_back(e);
  return groups;
}

inline std::optional<double> group_auc(const Examples& examples, bool by_impressions) {
  double sum = 0, weight = 0;
  for (const auto& [group, rows] : by_group(examples)) {
    const auto area = auc(rows);
    if (!area) continue;
    double impressions = 0;
    for (const Example& e : rows) impressions += e.weight;
    const double share = by_impressions ? impressions : 1;
    sum += share * *area;
    weight += share;
  }
  return weight > 0 ? std::optional(sum / weight) : std::nullopt;
}

struct First {
  double precision = 0, recall = 0;
};

// An example's chance to be among the first k when ties are drawn at random.
inline double chance_in_first(const Examples& rows, double prediction, uint32_t k) {
  double above = 0, tied = 0;
  for (const Example& e : rows) {
    above += e.prediction > prediction ? 1 : 0;
    tied += e.prediction == prediction ? 1 : 0;
  }
  return std::min(1.0, std::max(0.0, (k - above) / tied));
}

inline First at_k(const Examples& examples, uint32_t k) {
  First out;
  double groups = 0, with_positives = 0;
  for (const auto& [group, rows] : by_group(examples)) {
    double hits = 0, taken = 0, positives = 0;
    for (const Example& e : rows) {
      const double chance = chance_in_first(rows, e.prediction, k);
      taken += chance * e.weight;
      hits += chance * e.weight * e.label;
      positives += e.weight * e.label;
    }
    groups += 1;
    if (taken > 0) out.precision += hits / taken;
    if (positives > 0) {
      out.recall += hits / positives;
      with_positives += 1;
    }
  }
  out.precision /= groups;
  if (with_positives > 0) out.recall /= with_positives;
  return out;
}

}  // namespace flux::plain
