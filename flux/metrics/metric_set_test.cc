#include "flux/metrics/metric_set.h"

#include <cmath>

#include <gtest/gtest.h>

#include "flux/base/random.h"
#include "flux/metrics/test_reference.h"

namespace flux {
namespace {

struct Data {
  std::vector<float> predictions, labels, weights;
  std::vector<uint64_t> groups;

  ScoredBatch slice(size_t from, size_t n) const {
    const auto part = [&](const auto& all) {
      return std::span(all).subspan(all.empty() ? 0 : from, all.empty() ? 0 : n);
    };
    return {part(predictions), part(labels), part(weights), part(groups)};
  }
  ScoredBatch all() const { return slice(0, predictions.size()); }
  plain::Examples plain() const {
    plain::Examples out;
    for (size_t i = 0; i < predictions.size(); ++i)
      out.push_back({predictions[i], labels[i], weights.empty() ? 1 : weights[i],
                     groups.empty() ? 0 : groups[i]});
    return out;
  }
};

Data make(size_t n, uint64_t seed, bool weights, bool groups) {
  Random random(seed);
  Data data;
  for (size_t i = 0; i < n; ++i) {
    const double z = random.normal() - 1;
    double p = 1 / (1 + std::exp(-z - 0.8 * random.normal()));
    if (random.chance(0.3)) p = std::round(p * 10) / 10;  // ties, and both ends
    data.predictions.push_back(static_cast<float>(p));
    data.labels.push_back(random.chance(1 / (1 + std::exp(-z))) ? 1.0F : 0.0F);
    if (weights) data.weights.push_back(static_cast<float>(random.below(4) * random.uniform()));
    if (groups) data.groups.push_back(random.below(n / 8 + 1) << 40);
  }
  return data;
}

MetricReport report_of(const Data& data, MetricOptions options = {}) {
  MetricSet set(std::move(options));
  const KeyedBatch one{{}, data.all()};
  EXPECT_TRUE(set.add(static_cast<uint32_t>(data.labels.size()), 3.5, {&one, 1}).is_ok());
  return set.report();
}

void expect_equal(const MetricReport& a, const MetricReport& b) {
  EXPECT_EQ(a.examples, b.examples);
  EXPECT_EQ(a.loss, b.loss);
  ASSERT_EQ(a.rows.size(), b.rows.size());
  for (size_t i = 0; i < a.rows.size(); ++i) {
    const MetricValues &x = a.rows[i].values, &y = b.rows[i].values;
    EXPECT_EQ(a.rows[i].key, b.rows[i].key);
    EXPECT_EQ(x.exact, y.exact);
    for (const MetricField& field : metric_fields())
      EXPECT_EQ(x.*field.value, y.*field.value) << field.name;
    ASSERT_EQ(x.at.size(), y.at.size());
    for (size_t k = 0; k < x.at.size(); ++k) {
      EXPECT_EQ(x.at[k].precision, y.at[k].precision);
      EXPECT_EQ(x.at[k].recall, y.at[k].recall);
    }
    ASSERT_EQ(x.calibration.size(), y.calibration.size());
    for (size_t k = 0; k < x.calibration.size(); ++k)
      EXPECT_EQ(x.calibration[k].predicted, y.calibration[k].predicted);
  }
}

void expect_near(std::optional<double> value, std::optional<double> expected) {
  ASSERT_EQ(value.has_value(), expected.has_value());
  if (!value) return;
  EXPECT_NEAR(*value, *expected, 1e-12);
}

TEST(MetricSet, AgreesWithPlainLoops) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Data data = make(1 + seed * 37, seed, seed % 2 == 1, seed % 4 >= 2);
    const MetricReport report = report_of(data);
    const MetricValues& v = report.rows.at(0).values;
    const plain::Examples e = data.plain();
    if (!(v.weight > 0)) continue;
    const auto off = [](const plain::Example& x) { return std::abs(x.prediction - x.label); };
    const double clicked = plain::mean(e, [](const plain::Example& x) { return x.label; });
    const double predicted = plain::mean(e, [](const plain::Example& x) { return x.prediction; });
    expect_near(v.auc, plain::auc(e));
    expect_near(v.log_loss, plain::log_loss(e));
    expect_near(v.label_mean, clicked);
    expect_near(v.prediction_mean, predicted);
    expect_near(v.copc, clicked / predicted);
    expect_near(v.mae, plain::mean(e, off));
    expect_near(v.rmse, std::sqrt(plain::mean(e, [&](const auto& x) { return off(x) * off(x); })));
    expect_near(v.bucket_error, plain::bucket_error(e));
    if (data.groups.empty()) {
      EXPECT_FALSE(v.gauc || v.uauc || !v.at.empty());
      continue;
    }
    expect_near(v.gauc, plain::group_auc(e, true));
    expect_near(v.uauc, plain::group_auc(e, false));
    EXPECT_EQ(v.groups, plain::by_group(e).size());
    for (const AtK& at : v.at) {
      const plain::First first = plain::at_k(e, at.k);
      EXPECT_NEAR(at.precision, first.precision, 1e-12) << at.k;
      EXPECT_NEAR(at.recall, first.recall, 1e-12) << at.k;
    }
  }
}

TEST(MetricSet, BucketErrorOfAKnownStretch) {
  // 2,000 impressions at 0.5, of which 900 clicked: certain at once; the bucket's lower end is 0.5.
  Data data;
  data.predictions.assign(2000, 0.5F);
  data.labels.assign(2000, 0.0F);
  std::fill_n(data.labels.begin(), 900, 1.0F);
  EXPECT_NEAR(*report_of(data).rows[0].values.bucket_error, 0.1, 1e-12);
  data.predictions.assign(20, 0.5F);  // too few to tell
  data.labels.assign(20, 0.0F);
  EXPECT_FALSE(report_of(data).rows[0].values.bucket_error.has_value());
}

TEST(MetricSet, CalibrationBinsShareTheWeight) {
  const Data data = make(10000, 7, false, false);
  const MetricReport report = report_of(data);
  const MetricValues& v = report.rows.at(0).values;
  double weight = 0, predicted = 0, actual = 0;
  ASSERT_GT(v.calibration.size(), 15U);
  ASSERT_LE(v.calibration.size(), 20U);
  for (size_t i = 0; i < v.calibration.size(); ++i) {
    const CalibrationBin& bin = v.calibration[i];
    EXPECT_GT(bin.predicted, i > 0 ? v.calibration[i - 1].predicted : -1);
    weight += bin.weight;
    predicted += bin.weight * bin.predicted;
    actual += bin.weight * bin.actual;
  }
  EXPECT_EQ(weight, 10000);
  EXPECT_NEAR(predicted / weight, *v.prediction_mean, 1e-12);
  EXPECT_NEAR(actual / weight, *v.label_mean, 1e-12);
}

// The parts of `data` that come from one of several workers, in an order of its own.
MetricSet shuffled_parts(const Data& data, uint64_t seed, const MetricOptions& options) {
  Random random(seed);
  std::vector<MetricSet> workers(3, MetricSet(options));
  std::vector<size_t> starts;
  constexpr size_t kPart = 50;
  for (size_t i = 0; i < data.labels.size(); i += kPart) starts.push_back(i);
  for (size_t i = starts.size(); i > 1; --i) std::swap(starts[i - 1], starts[random.below(i)]);
  for (const size_t start : starts) {
    const KeyedBatch batches[] = {{{"", ""}, data.slice(start, kPart)},
                                  {{"", "slot=1"}, data.slice(start, kPart / 5)}};
    const std::string bytes = encode_scored(kPart, static_cast<double>(start) * 0.1, batches);
    EXPECT_TRUE(workers[random.below(3)].add_encoded(bytes).is_ok());
  }
  const size_t first = random.below(3);
  MetricSet sum(options);
  for (size_t i = 0; i < 3; ++i) sum.merge(workers[(first + i) % 3]);
  return sum;
}

TEST(MetricSet, TheWayOfMergingDoesNotShow) {
  for (const uint64_t bound : {1ULL << 24, 1000ULL}) {
    const Data data = make(3000, 9, true, true);
    MetricOptions options;
    options.records_max = bound;
    const MetricReport first = shuffled_parts(data, 1, options).report();
    ASSERT_EQ(first.rows.size(), 2U);
    EXPECT_EQ(first.rows[1].key.slice, "slot=1");
    EXPECT_EQ(first.rows[1].values.examples, 600U);
    EXPECT_EQ(first.rows[0].values.exact, bound > 3600);
    for (uint64_t seed = 2; seed < 8; ++seed)
      expect_equal(shuffled_parts(data, seed, options).report(), first);
  }
}

TEST(MetricSet, BeyondTheBoundItIsByBuckets) {
  const Data data = make(20000, 11, true, true);
  MetricOptions options;
  options.records_max = 19999;
  const MetricReport kept = report_of(data), dropped = report_of(data, options);
  const MetricValues &exact = kept.rows[0].values, &coarse = dropped.rows[0].values;
  EXPECT_FALSE(coarse.exact);
  EXPECT_NEAR(*coarse.auc, *exact.auc, 1e-5);
  EXPECT_NEAR(*coarse.bucket_error, *exact.bucket_error, 1e-5);
  EXPECT_EQ(coarse.log_loss, exact.log_loss);  // sums stay exact
  EXPECT_EQ(coarse.rmse, exact.rmse);
  EXPECT_FALSE(coarse.gauc.has_value());
}

TEST(MetricSet, WhatHasNoMeaningIsAbsent) {
  Data data;
  data.predictions = {0.25F, 0.5F};
  data.labels = {1, 1};
  const MetricReport one_class = report_of(data);
  EXPECT_FALSE(one_class.rows[0].values.auc.has_value());
  EXPECT_NEAR(*one_class.rows[0].values.log_loss, (std::log(4) + std::log(2)) / 2, 1e-12);
  data.labels = {3, -1};  // a regression
  data.predictions = {2, 0};
  const MetricReport regression = report_of(data);
  EXPECT_FALSE(regression.rows[0].values.auc || regression.rows[0].values.log_loss);
  EXPECT_EQ(*regression.rows[0].values.mae, 1);
  EXPECT_EQ(*regression.rows[0].values.rmse, 1);
  EXPECT_EQ(MetricSet().report().whole(), nullptr);
}

TEST(MetricSet, ACertainMistakeCostsMuchButNotEverything) {
  Data data;
  data.predictions = {0, 1};
  data.labels = {1, 0};
  EXPECT_NEAR(*report_of(data).rows[0].values.log_loss, 36.04, 0.01);
}

TEST(ScoredBytes, EveryPartTravels) {
  for (const bool weights : {false, true})
    for (const bool groups : {false, true})
      for (const float label : {1.0F, 0.25F}) {
        Data data = make(1001, 5, weights, groups);
        data.labels[7] = label;
        const KeyedBatch one{{"ctr", "slot=5"}, data.all()};
        MetricSet direct, told;
        ASSERT_TRUE(direct.add(1001, 2.5, {&one, 1}).is_ok());
        const Status status = told.add_encoded(encode_scored(1001, 2.5, {&one, 1}));
        ASSERT_TRUE(status.is_ok()) << status.message();
        expect_equal(told.report(), direct.report());
        EXPECT_EQ(told.report().rows[0].key.head, "ctr");
      }
  Data data = make(100, 5, true, true);
  data.labels = data.predictions;
  KeyedBatch classes{{}, data.all()};
  classes.batch.class_numbers = true;
  MetricSet told;
  ASSERT_TRUE(told.add_encoded(encode_scored(100, 2.5, {&classes, 1})).is_ok());
  EXPECT_EQ(*told.report().whole()->accuracy, 1);
}

TEST(ScoredBytes, NonsenseIsRefusedWhole) {
  const Data data = make(100, 5, true, true);
  const KeyedBatch one{{"ctr", ""}, data.all()};
  const std::string good = encode_scored(100, 2.5, {&one, 1});
  MetricSet set;
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(set.add_encoded(good.substr(0, size)).is_ok()) << size;
  EXPECT_FALSE(set.add_encoded(good + "x").is_ok());
  Random random(1);
  for (int i = 0; i < 2000; ++i) {  // hostile bytes: any answer, no crash
    std::string bytes = good;
    for (int n = 0; n < 3; ++n) bytes[random.below(40)] = static_cast<char>(random.below(256));
    MetricSet hurt;
    if (hurt.add_encoded(bytes).is_ok()) (void)hurt.report();
  }
  EXPECT_FALSE(set.add_encoded(encode_scored(99, 2.5, {&one, 1})).is_ok());  // too many predictions
  EXPECT_FALSE(set.add_encoded(encode_scored(100, NAN, {&one, 1})).is_ok());
  Data odd = data;
  odd.weights[3] = -1;
  const KeyedBatch negative{{"", ""}, odd.all()};
  EXPECT_FALSE(set.add_encoded(encode_scored(100, 1, {&negative, 1})).is_ok());
  odd = data;
  odd.predictions[3] = NAN;
  const KeyedBatch no_number{{"", ""}, odd.all()};
  EXPECT_FALSE(set.add_encoded(encode_scored(100, 1, {&no_number, 1})).is_ok());
  EXPECT_EQ(set.examples(), 0U);
  EXPECT_TRUE(set.report().rows.empty());
}

TEST(MetricSet, HeadsKeepTheOrderOfTheNetwork) {
  const Data data = make(10, 1, false, false);
  const KeyedBatch heads[] = {{{"click", ""}, data.all()},
                              {{"buy", ""}, data.all()},
                              {{"buy", "slot=1"}, data.slice(0, 5)}};
  MetricSet one, sum;
  ASSERT_TRUE(one.add(10, 0, heads).is_ok());
  sum.merge(one);
  const MetricReport report = sum.report();
  ASSERT_EQ(report.rows.size(), 3U);
  EXPECT_EQ(report.rows[0].key.head, "click");
  EXPECT_EQ(report.rows[1].key.head, "buy");
  EXPECT_EQ(report.rows[2].key.slice, "slot=1");
  EXPECT_EQ(report.whole(), &report.rows[0].values);
}

TEST(MetricSet, TooManySlicesAreRefused) {
  const Data data = make(1, 1, false, false);
  MetricSet set;
  for (uint32_t i = 0; i <= kScoredKeysMax; ++i) {
    const KeyedBatch one{{"", std::to_string(i)}, data.all()};
    EXPECT_EQ(set.add(1, 0, {&one, 1}).is_ok(), i < kScoredKeysMax);
  }
}

TEST(MetricLine, NamesEveryValue) {
  MetricValues values;
  values.auc = 0.5;
  values.gauc = 0.25;
  values.at = {{5, 0.5, 0.125}};
  EXPECT_EQ(metric_line(values),
            "auc 0.50000 · gauc 0.25000 · precision@5 0.50000 · recall@5 0.12500");
}

}  // namespace
}  // namespace flux
