// MergedPush against a plain sum in double precision.
#include "flux/client/merge.h"

#include <map>

#include <gtest/gtest.h>

#include "flux/base/random.h"

namespace flux {
namespace {

constexpr uint32_t kShards = 7;
const std::vector<uint32_t> kDims = {3, 1};
constexpr size_t kParameters = 11;

struct Part {
  explicit Part(uint64_t seed, size_t occurrences) : plan(kShards) {
    Random random(seed);
    std::vector<uint64_t> keys(occurrences);
    for (uint64_t& key : keys) key = random.below(200);
    plan.build(keys);
    for (const uint32_t dim : kDims) {
      rows.emplace_back(plan.unique() * dim);
      for (float& x : rows.back()) x = static_cast<float>(random.normal());
    }
    dense.resize(kParameters);
    for (float& x : dense) x = static_cast<float>(random.normal());
    part.id = {{0, 0, 0, 0}, static_cast<uint8_t>(seed), 32};
    part.keys = plan.sharded();
    part.counts = plan.counts().data();
    part.tables = {rows[0].data(), rows[1].data()};
    part.dense = dense.data();
    part.examples = occurrences;
  }
  KeyPlan plan;
  std::vector<std::vector<float>> rows;
  std::vector<float> dense;
  PushPart part;
};

struct Sum {
  std::map<uint64_t, std::vector<double>> rows[2];
  std::map<uint64_t, uint64_t> counts;
  std::vector<double> dense = std::vector<double>(kParameters);
  void add(const Part& p) {
    for (size_t i = 0; i < p.plan.unique(); ++i) {
      const uint64_t key = p.plan.keys()[i];
      counts[key] += p.plan.counts()[i];
      for (size_t t = 0; t < 2; ++t) {
        rows[t][key].resize(kDims[t]);
        for (uint32_t d = 0; d < kDims[t]; ++d)
          rows[t][key][d] += double{p.part.weight} * p.rows[t][i * kDims[t] + d];
      }
    }
    for (size_t d = 0; d < kParameters; ++d) dense[d] += double{p.part.weight} * p.dense[d];
  }
};

void expect_equal(const MergedPush& merged, const Sum& sum) {
  ASSERT_EQ(merged.unique(), sum.counts.size());
  for (ShardId shard = 0; shard < kShards; ++shard)
    for (uint32_t i = merged.keys().begin[shard]; i < merged.keys().begin[shard + 1]; ++i) {
      const uint64_t key = merged.keys().keys[i];
      EXPECT_EQ(merged.counts()[i], sum.counts.at(key));
      for (size_t t = 0; t < 2; ++t)
        for (uint32_t d = 0; d < kDims[t]; ++d)
          EXPECT_NEAR(merged.tables()[t][i * kDims[t] + d], sum.rows[t].at(key)[d], 1e-5);
    }
  for (size_t d = 0; d < kParameters; ++d) EXPECT_NEAR(merged.dense()[d], sum.dense[d], 1e-5);
}

TEST(MergedPush, EqualsAPlainSum) {
  MergedPush merged(kShards, kDims, kParameters);
  for (uint64_t n = 0; n < 6; ++n) {
    std::vector<std::unique_ptr<Part>> parts;
    std::vector<uint64_t> examples;
    for (uint64_t i = 0; i < n; ++i) {
      parts.push_back(std::make_unique<Part>(n * 10 + i, i * 150));  // one has no keys at all
      examples.push_back(i * 150);
    }
    const std::vector<float> weights = mean_weights(examples);
    Sum sum;
    std::vector<PushPart> in;
    double whole = 0;
    for (uint64_t i = 0; i < n; ++i) {
      parts[i]->part.weight = weights[i];
      whole += weights[i];
      sum.add(*parts[i]);
      in.push_back(parts[i]->part);
    }
    EXPECT_NEAR(whole, n > 1 ? 1 : 0, 1e-6);
    merged.merge(in);
    expect_equal(merged, sum);
    EXPECT_EQ(merged.examples(), n * (n - (n > 0 ? 1 : 0)) / 2 * 150);
  }
}

TEST(MergedPush, OnePartOfFullWeightIsTheSameBits) {
  const Part part(3, 500);
  MergedPush merged(kShards, kDims, kParameters);
  merged.merge(std::span(&part.part, 1));
  ASSERT_EQ(merged.unique(), part.plan.unique());
  for (size_t i = 0; i < merged.unique(); ++i) {
    EXPECT_EQ(merged.keys().keys[i], part.plan.keys()[i]);
    EXPECT_EQ(merged.tables()[1][i], part.rows[1][i]);
  }
}

// Summaries: each part once and whole, also when only some of a set are summed anew.
TEST(MergedPush, SumsAreAddedUpWithoutWeights) {
  Part a(1, 100), b(2, 300);
  a.part.weight = 0.25F;
  b.part.weight = 0.75F;
  MergedPush merged(kShards, kDims, kParameters, {{2, 4}, {9, 11}});
  merged.merge(std::vector<PushPart>{a.part, b.part});
  for (const size_t i : {2, 3, 9, 10}) EXPECT_EQ(merged.dense()[i], a.dense[i] + b.dense[i]) << i;
  for (const size_t i : {0, 1, 4, 8})
    EXPECT_EQ(merged.dense()[i], 0.25F * a.dense[i] + 0.75F * b.dense[i]) << i;
  merged.merge(std::span(&b.part, 1));
  EXPECT_EQ(merged.dense()[3], b.dense[3]);
}

TEST(MergedPush, ItsScaleIsThatOfItsPartsOrTheirMean) {
  std::vector<PushPart> parts(3);
  parts[0].examples = 100;
  parts[1].examples = 50;
  parts[2].examples = 1;
  EXPECT_EQ(merged_lr_scale({}), 1.0F);
  for (PushPart& part : parts) part.lr_scale = 0.1F;
  EXPECT_EQ(merged_lr_scale(parts), 0.1F) << "equal ones bit for bit";
  parts[1].lr_scale = 4.0F;
  EXPECT_FLOAT_EQ(merged_lr_scale(parts), (0.1F * 101 + 4.0F * 50) / 151);
  for (PushPart& part : parts) part.examples = 0;
  EXPECT_EQ(merged_lr_scale(parts), 0.1F);
}

}  // namespace
}  // namespace flux
