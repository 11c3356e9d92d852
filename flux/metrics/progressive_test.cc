#include "flux/metrics/progressive.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "flux/base/random.h"
#include "flux/metrics/accumulator.h"

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

BinaryMetrics seen(const Examples& e) {
  BinaryMetrics metrics;
  metrics.add({e.predictions, e.labels, {}, {}});
  return metrics;
}

TEST(BinaryMetrics, AgreesWithExactAuc) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const Examples e = make(50000, seed);
    const MetricValues values = seen(e).values();
    EXPECT_NEAR(*values.auc, exact_auc(e.labels, e.predictions), 1e-5);
    EXPECT_EQ(values.examples, 50000U);
    const auto positives = static_cast<double>(std::count(e.labels.begin(), e.labels.end(), 1.0F));
    EXPECT_EQ(*values.label_mean, positives / 50000);
  }
}

TEST(BinaryMetrics, MergeEqualsAddingEverythingToOne) {
  const Examples a = make(1000, 1), b = make(3000, 2);
  BinaryMetrics one = seen(a), left = seen(a);
  one.add({b.predictions, b.labels, {}, {}});
  left.merge(seen(b));
  EXPECT_EQ(left.auc(), one.auc());
  EXPECT_EQ(left.values().log_loss, one.values().log_loss);
  EXPECT_EQ(BinaryMetrics().examples(), 0U);
  EXPECT_FALSE(BinaryMetrics().auc() || BinaryMetrics().values().log_loss);
}

TEST(BinaryMetrics, OneClassAndOddPredictionsHaveNoAuc) {
  BinaryMetrics metrics;
  const float labels[2] = {1, 1};
  const float predictions[2] = {0.0F, 1.0F};
  metrics.add({predictions, labels, {}, {}});
  EXPECT_FALSE(metrics.auc().has_value());
  EXPECT_EQ(*metrics.values().label_mean, 1);
  const float zero = 0, odd[2] = {NAN, -3.0F};
  metrics.add({{odd, 1}, {&zero, 1}, {}, {}});
  EXPECT_FALSE(metrics.auc() || metrics.values().log_loss) << "no probability";
}

// The exact metrics of the same examples: what is null there is null here, weights count alike.
MetricValues held_out(const ScoredBatch& batch) {
  MetricAccumulator exact;
  exact.add(batch);
  return exact.values({});
}

TEST(BinaryMetrics, WeightsCountAsInHeldOutMetrics) {
  const Examples e = make(3000, 4);
  Random random(4);
  std::vector<float> weights;
  for (size_t i = 0; i < e.labels.size(); ++i)
    weights.push_back(static_cast<float>(random.below(5)) * 0.25F);
  const ScoredBatch all{e.predictions, e.labels, weights, {}};
  const auto part = [&](size_t from, size_t n, bool weighed) {
    const auto cut = [&](const std::vector<float>& v) { return std::span(v).subspan(from, n); };
    return ScoredBatch{
        cut(e.predictions), cut(e.labels), weighed ? cut(weights) : std::span<const float>(), {}};
  };
  std::fill_n(weights.begin(), 1000, 1.0F);  // of which the first part says nothing
  BinaryMetrics left, right;
  left.add(part(0, 1000, false));
  right.add(part(1000, 2000, true));
  left.merge(right);
  const MetricValues found = left.values(), exact = held_out(all);
  EXPECT_NEAR(found.weight, exact.weight, 1e-9);
  EXPECT_LT(found.weight, 2500) << "not the number of examples";
  for (const auto field : {&MetricValues::log_loss, &MetricValues::label_mean, &MetricValues::mae,
                           &MetricValues::prediction_mean, &MetricValues::rmse})
    EXPECT_NEAR(*(found.*field), *(exact.*field), 1e-9);
  EXPECT_NEAR(*found.auc, *exact.auc, 1e-4);
}

TEST(BinaryMetrics, WhatHasNoMeaningIsAbsent) {
  const std::vector<float> labels = {3, -1, 0, 1}, predictions = {2, 0, 0, 1};
  for (const bool class_numbers : {false, true}) {
    BinaryMetrics metrics;
    const ScoredBatch batch{predictions, labels, {}, {}, class_numbers};
    metrics.add(batch);
    const MetricValues found = metrics.values(), exact = held_out(batch);
    for (const MetricField& field : metric_fields())
      EXPECT_EQ(found.*field.value, exact.*field.value) << field.name;
    EXPECT_EQ(found.accuracy, class_numbers ? std::optional(0.5) : std::nullopt);
    EXPECT_EQ(found.rmse.has_value(), !class_numbers);
    EXPECT_FALSE(found.log_loss || found.auc);
  }
  // Two classes of a softmax look like probabilities, and are none.
  const ScoredBatch two{
      std::span(predictions).subspan(2), std::span(labels).subspan(2), {}, {}, true};
  EXPECT_FALSE(held_out(two).log_loss || held_out(two).auc || held_out(two).bucket_error);
  EXPECT_EQ(*held_out(two).accuracy, 1);
}

}  // namespace
}  // namespace flux
