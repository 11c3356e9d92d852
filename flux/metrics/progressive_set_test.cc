// Progressive metrics by head, phase and slice, split over any number of threads and workers,
// against plain counts over all examples.
#include "flux/metrics/progressive_set.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "flux/base/random.h"
#include "flux/metrics/metric_set.h"

namespace flux {
namespace {

constexpr uint32_t kValues = 4;

struct Example {
  float label, prediction;
  uint64_t value;
};
using Examples = std::vector<Example>;

std::vector<Examples> make_batches(Random* random) {
  std::vector<Examples> batches(20);
  for (Examples& batch : batches)
    for (uint64_t i = 1 + random->below(30); i > 0; --i) {
      const auto prediction = static_cast<float>(random->below(1000)) * 0.001F;
      const uint64_t value = random->below(10) == 0 ? kNoSlice : random->below(12) * 7;
      batch.push_back({random->below(3) == 0 ? 1.0F : 0.0F, prediction, value});
    }
  return batches;
}

struct Columns {
  std::vector<float> labels, predictions;
  std::vector<uint64_t> values;
  explicit Columns(const Examples& examples) {
    for (const Example& e : examples) {
      labels.push_back(e.label);
      predictions.push_back(e.prediction);
      values.push_back(e.value);
    }
  }
};

void add(const Examples& batch, ProgressiveSet* set) {
  const Columns c(batch);
  const MetricKey key{"click", "", "join"};
  const ScoredBatch all{c.predictions, c.labels, {}, {}};
  set->add(key, {1, 0}, all);
  set->add_slices(key, all, split_slices({"place", kValues}, c.values));
}

std::string slice_of(uint64_t value, const std::set<uint64_t>& kept) {
  if (value == kNoSlice) return "place=none";
  return kept.contains(value) ? "place=" + std::to_string(value) : "place=other";
}

// Every pair of a positive and a negative, in the buckets of a slice.
double plain_auc(const Examples& examples) {
  double right = 0, pairs = 0;
  const auto bucket = [](const Example& e) { return score_bucket(e.prediction) >> 5; };
  for (const Example& p : examples)
    for (const Example& n : examples) {
      if (p.label < 0.5F || n.label > 0.5F) continue;
      ++pairs;
      right += bucket(p) > bucket(n) ? 1 : bucket(p) == bucket(n) ? 0.5 : 0;
    }
  return right / pairs;
}

TEST(ProgressiveSet, SlicesAgreeWithPlainCountsHoweverTheyAreSplit) {
  Random random(3);
  for (int round = 0; round < 50; ++round) {
    const std::vector<Examples> batches = make_batches(&random);
    std::vector<ProgressiveSet> threads(1 + random.below(5), ProgressiveSet(kValues));
    for (const Examples& batch : batches) add(batch, &threads[random.below(threads.size())]);
    ProgressiveSet sum;  // as a coordinator's, which does not say how many values
    for (const ProgressiveSet& one : threads) {
      const auto told = ProgressiveSet::decode(one.encode());
      ASSERT_TRUE(told.is_ok());
      sum.merge(told.value());
    }
    std::set<uint64_t> values;
    for (const Examples& batch : batches)
      for (const Example& e : batch)
        if (e.value != kNoSlice) values.insert(e.value);
    std::set<uint64_t> kept;
    for (const uint64_t value : values)
      if (kept.size() < kValues) kept.insert(value);
    std::map<std::string, Examples> parts;
    for (const Examples& batch : batches)
      for (const Example& e : batch) parts[slice_of(e.value, kept)].push_back(e);
    size_t slices = 0;
    for (const MetricReport::Row& row : sum.report().rows) {
      EXPECT_EQ(row.key.phase, "join");
      if (row.key.slice.empty()) continue;
      ++slices;
      const Examples& part = parts.at(row.key.slice);
      ASSERT_EQ(row.values.examples, part.size()) << row.key.slice;
      double positives = 0, predicted = 0, loss = 0;
      for (const Example& e : part) {
        const double p = std::clamp(static_cast<double>(e.prediction), 0x1p-52, 1 - 0x1p-52);
        positives += e.label;
        predicted += e.prediction;
        loss -= std::log(e.label > 0.5F ? p : 1 - p);
      }
      const auto n = static_cast<double>(part.size());
      EXPECT_DOUBLE_EQ(*row.values.label_mean, positives / n);
      EXPECT_NEAR(*row.values.prediction_mean, predicted / n, 1e-7);
      EXPECT_NEAR(*row.values.log_loss, loss / n, 1e-7);
      if (row.values.auc) {
        EXPECT_NEAR(*row.values.auc, plain_auc(part), 1e-12);
      }
    }
    EXPECT_EQ(slices, parts.size());
  }
}

TEST(ProgressiveSet, PhasesAndHeadsKeepTheOrderOfTheJob) {
  const float labels[] = {0, 1}, good[] = {0.25F, 0.75F}, bad[] = {0.75F, 0.25F};
  ProgressiveSet first(kValues), second(kValues);
  // Another worker begins with the last phase.
  second.add({"click", "", "second"}, {1, 0}, {bad, labels, {}, {}});
  first.add({"view", "", "first"}, {0, 0}, {good, labels, {}, {}});
  first.add({"buy", "", "first"}, {0, 1}, {bad, labels, {}, {}});
  const Slice slice{"place=1", {0}};
  first.add_slices({"view", "", "first"}, {good, labels, {}, {}}, {&slice, 1});
  ProgressiveSet sum;
  for (const ProgressiveSet* one : {&second, &first})
    sum.merge(ProgressiveSet::decode(one->encode()).value());
  const MetricReport report = sum.report(6, 3);
  std::vector<std::string> names;
  for (const MetricReport::Row& row : report.rows) names.push_back(to_string(row.key));
  EXPECT_EQ(names, (std::vector<std::string>{"first/view", "first/view/place=1", "first/buy",
                                             "second/click"}));
  EXPECT_EQ(report.examples, 6U) << "not once for each head";
  EXPECT_EQ(report.loss, 0.5);
  EXPECT_EQ(sum.auc(0), 1) << "of the network's first head, not of the alphabet's";
  EXPECT_EQ(sum.auc(1), 0);
  EXPECT_FALSE(sum.auc(2).has_value());
}

TEST(ProgressiveSet, TheWholeLiesBetweenItsSlices) {
  Random random(8);
  ProgressiveSet set(kValues);
  for (const Examples& batch : make_batches(&random)) add(batch, &set);
  double low = 1e9, high = 0;
  const MetricReport report = set.report();
  for (const MetricReport::Row& row : report.rows) {
    if (row.key.slice.empty()) continue;
    low = std::min(low, *row.values.log_loss);
    high = std::max(high, *row.values.log_loss);
  }
  EXPECT_LT(low, *report.whole()->log_loss);
  EXPECT_GT(high, *report.whole()->log_loss);
}

TEST(ProgressiveSet, TheSameBytesHoweverItIsSplit) {
  Random random(4);
  const std::vector<Examples> batches = make_batches(&random);
  ProgressiveSet one(kValues);
  for (const Examples& batch : batches) add(batch, &one);
  for (int round = 0; round < 20; ++round) {
    std::vector<ProgressiveSet> threads(3, ProgressiveSet(kValues));
    for (const Examples& batch : batches) add(batch, &threads[random.below(3)]);
    ProgressiveSet sum = threads[0];
    sum.merge(threads[2]);
    sum.merge(threads[1]);
    EXPECT_EQ(sum.encode(), one.encode());
  }
}

TEST(ProgressiveSet, RefusesWhatIsNoSuchBytes) {
  Random random(5);
  ProgressiveSet set(kValues);
  for (const Examples& batch : make_batches(&random)) add(batch, &set);
  const std::string bytes = set.encode();
  for (size_t size = 0; size < std::min<size_t>(bytes.size(), 400); ++size)
    EXPECT_FALSE(ProgressiveSet::decode(std::string_view(bytes).substr(0, size)).is_ok()) << size;
  EXPECT_FALSE(ProgressiveSet::decode(bytes + "x").is_ok());
  for (int i = 0; i < 2000; ++i) {  // nothing in it may break the reader
    std::string bent = bytes;
    bent[random.below(200)] ^= static_cast<char>(1U << random.below(8));
    const auto read = ProgressiveSet::decode(bent);
    if (read.is_ok()) (void)read.value().report();
  }
}

// Held-out records by slice: the same rule, exact metrics.
TEST(MetricSet, KeepsTheSmallestValuesOfASlot) {
  Random random(6);
  MetricOptions options;
  options.slice_values = 2;
  const float labels[] = {0, 1}, predictions[] = {0.25F, 0.75F};
  std::vector<int> order(10);
  for (int i = 0; i < 10; ++i) order[static_cast<size_t>(i)] = i;
  for (int round = 0; round < 20; ++round) {
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    MetricSet set(options);
    for (const int value : order) {
      const KeyedBatch batch{{"", "place=" + std::to_string(value * 5)},
                             {predictions, labels, {}, {}}};
      ASSERT_TRUE(set.add(2, 0, {&batch, 1}).is_ok());
    }
    std::map<std::string, uint64_t> found;
    for (const MetricReport::Row& row : set.report().rows)
      found[row.key.slice] = row.values.examples;
    EXPECT_EQ(found, (std::map<std::string, uint64_t>{
                         {"place=0", 2}, {"place=5", 2}, {"place=other", 16}}));
  }
}

}  // namespace
}  // namespace flux
