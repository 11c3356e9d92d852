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
  MergedPush merged({kShards, kDims, kParameters});
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

// Table 0 has rows for the keys of group 1 alone, table 1 for all.
TEST(MergedPush, OfTablesThatHaveSomeOfTheKeys) {
  const ModelShape shape{kShards, {3, 1}, 1, 2, {2, 0}};
  Random random(9);
  std::vector<KeyPlan> plans(3, KeyPlan(shape));
  std::vector<std::vector<float>> wide(3), narrow(3);
  std::vector<PushPart> parts(3);
  const float dense = 0;
  std::map<std::pair<uint64_t, uint32_t>, std::vector<double>> sums[2];  // by key and group
  for (size_t p = 0; p < 3; ++p) {
    std::vector<uint64_t> keys(200);
    std::vector<uint8_t> groups(200);
    for (size_t i = 0; i < 200; ++i) {
      keys[i] = random.below(90);
      groups[i] = static_cast<uint8_t>(random.below(2));
    }
    plans[p].build(keys, groups);
    const uint32_t first = plans[p].begin()[shape.group_shards(1).begin];
    wide[p].resize((plans[p].unique() - first) * 3);
    narrow[p].resize(plans[p].unique());
    for (float& x : wide[p]) x = static_cast<float>(random.normal());
    for (float& x : narrow[p]) x = static_cast<float>(random.normal());
    parts[p].keys = plans[p].sharded();
    parts[p].counts = plans[p].counts().data();
    parts[p].tables = {wide[p].data(), narrow[p].data()};
    parts[p].dense = &dense;
    parts[p].weight = static_cast<float>(p + 1) * 0.25F;
    for (uint32_t i = 0; i < plans[p].unique(); ++i) {
      const uint32_t group = i >= first ? 1 : 0;
      auto& one = sums[1][{plans[p].keys()[i], group}];
      one.resize(1);
      one[0] += double{parts[p].weight} * narrow[p][i];
      auto& three = sums[0][{plans[p].keys()[i], group}];
      three.resize(3);
      for (size_t d = 0; d < 3 && group == 1; ++d)
        three[d] += double{parts[p].weight} * wide[p][(i - first) * 3 + d];
    }
  }
  MergedPush merged(shape);
  merged.merge(parts);
  ASSERT_EQ(merged.unique(), sums[1].size());
  const uint32_t first = merged.keys().begin[shape.group_shards(1).begin];
  for (uint32_t i = 0; i < merged.unique(); ++i) {
    const std::pair<uint64_t, uint32_t> key{merged.keys().keys[i], i >= first ? 1 : 0};
    EXPECT_NEAR(merged.tables()[1][i], sums[1].at(key)[0], 1e-5);
    for (size_t d = 0; d < 3 && i >= first; ++d)
      EXPECT_NEAR(merged.tables()[0][(i - first) * 3 + d], sums[0].at(key)[d], 1e-5);
  }
}

TEST(MergedPush, OnePartOfFullWeightIsTheSameBits) {
  const Part part(3, 500);
  MergedPush merged({kShards, kDims, kParameters});
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
  MergedPush merged({kShards, kDims, kParameters}, {{2, 4}, {9, 11}});
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
