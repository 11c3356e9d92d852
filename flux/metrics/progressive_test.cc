#include "flux/metrics/progressive.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "flux/base/random.h"

namespace flux {
namespace {

// Exact area by ranks: ties share the mean of their ranks.
double exact_auc(const std::vector<float>& labels, const std::vector<float>& predictions) {
  std::vector<size_t> order(labels.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return predictions[a] < predictions[b]; });
  double rank_sum = 0, positives = 0;
  for (size_t i = 0; i < order.size();) {
    size_t end = i;
    double tied = 0;
    for (; end < order.size() && predictions[order[end]] == predictions[order[i]]; ++end)
      tied += labels[order[end]];
    rank_sum += tied * (static_cast<double>(i + end) + 1) / 2;
    positives += tied;
    i = end;
  }
  const double negatives = static_cast<double>(labels.size()) - positives;
  return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives);
}

struct Examples {
  std::vector<float> labels, predictions;
};

Examples make(size_t n, uint64_t seed) {
  Random random(seed);
  Examples examples;
  for (size_t i = 0; i < n; ++i) {
    const double z = random.normal() - 1;
    double p = 1 / (1 + std::exp(-z - 0.8 * random.normal()));
    if (random.chance(0.2)) p = std::round(p * 10) / 10;  // ties, and both ends
    examples.labels.push_back(random.chance(1 / (1 + std::exp(-z))) ? 1.0F : 0.0F);
    examples.predictions.push_back(static_cast<float>(p));
  }
  return examples;
}

TEST(BinaryMetrics, AgreesWithExactAuc) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const Examples e = make(50000, seed);
    BinaryMetrics metrics;
    metrics.add(e.labels.data(), e.predictions.data(), 50000, 12345.678);
    EXPECT_NEAR(metrics.auc(), exact_auc(e.labels, e.predictions), 1e-5);
    EXPECT_NEAR(metrics.log_loss(), 12345.678 / 50000, 1e-9);
    EXPECT_EQ(metrics.examples(), 50000U);
    const double positives = std::count(e.labels.begin(), e.labels.end(), 1.0F);
    EXPECT_EQ(metrics.ctr(), positives / 50000);
  }
}

TEST(BinaryMetrics, MergeEqualsAddingEverythingToOne) {
  const Examples a = make(1000, 1), b = make(3000, 2);
  BinaryMetrics one, left, right;
  one.add(a.labels.data(), a.predictions.data(), 1000, 1.5);
  one.add(b.labels.data(), b.predictions.data(), 3000, 2.25);
  left.add(a.labels.data(), a.predictions.data(), 1000, 1.5);
  right.add(b.labels.data(), b.predictions.data(), 3000, 2.25);
  left.merge(right);
  EXPECT_EQ(left.auc(), one.auc());
  EXPECT_EQ(left.log_loss(), one.log_loss());
  left.clear();
  EXPECT_EQ(left.examples(), 0U);
  EXPECT_EQ(left.auc(), 0.5);
  EXPECT_EQ(left.log_loss(), 0);
}

TEST(BinaryMetrics, OneClassAndOddPredictions) {
  BinaryMetrics metrics;
  const float labels[4] = {1, 1, 1, 1};
  const float predictions[4] = {0.0F, 1.0F, NAN, -3.0F};
  metrics.add(labels, predictions, 4, 0);
  EXPECT_EQ(metrics.auc(), 0.5);
  EXPECT_EQ(metrics.ctr(), 1);
  const float zero = 0, high = 2.0F;
  metrics.add(&zero, &high, 1, 0);
  EXPECT_DOUBLE_EQ(metrics.auc(), 0.5 / 4);
}

}  // namespace
}  // namespace flux
