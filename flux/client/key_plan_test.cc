// Plans against a map from key to occurrences, over batches that share one plan's memory.
#include "flux/client/key_plan.h"

#include <map>
#include <unordered_map>

#include <gtest/gtest.h>

#include "flux/base/key.h"
#include "flux/base/random.h"

namespace flux {
namespace {

void expect_plan_of(const KeyPlan& plan, const std::vector<uint64_t>& keys, uint32_t shards) {
  std::unordered_map<uint64_t, uint32_t> reference;
  for (const uint64_t key : keys) ++reference[key];
  ASSERT_EQ(plan.unique(), reference.size());
  ASSERT_EQ(plan.keys().size(), reference.size());
  ASSERT_EQ(plan.counts().size(), reference.size());
  ASSERT_EQ(plan.index().size(), keys.size());
  ASSERT_EQ(plan.begin().size(), shards + 1);
  EXPECT_EQ(plan.begin().front(), 0U);
  EXPECT_EQ(plan.begin().back(), reference.size());
  for (uint32_t s = 0; s < shards; ++s) {
    ASSERT_LE(plan.begin()[s], plan.begin()[s + 1]);
    for (uint32_t i = plan.begin()[s]; i < plan.begin()[s + 1]; ++i)
      ASSERT_EQ(shard_of(plan.keys()[i], shards), s);
  }
  for (size_t i = 0; i < plan.unique(); ++i) {
    const auto at = reference.find(plan.keys()[i]);
    ASSERT_NE(at, reference.end()) << "a key that is not in the batch, or one that is there twice";
    ASSERT_EQ(plan.counts()[i], at->second);
    reference.erase(at);
  }
  EXPECT_TRUE(reference.empty());
  for (size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(plan.keys()[plan.index()[i]], keys[i]);
  for (size_t p = 0; p + 1 < plan.first().size(); p += 17) {
    std::vector<uint32_t> want;
    for (uint32_t i = 0; i < keys.size(); ++i)
      if (plan.index()[i] == p) want.push_back(i);
    const auto begin = plan.occurrences().begin();
    ASSERT_EQ(want, std::vector<uint32_t>(begin + plan.first()[p], begin + plan.first()[p + 1]));
  }
  EXPECT_EQ(plan.sharded().keys, plan.keys().data());
  EXPECT_EQ(plan.sharded().begin, plan.begin().data());
}

TEST(KeyPlan, EqualsAMapForEveryNumberOfShards) {
  for (const uint32_t shards : {1U, 2U, 7U, 256U, 65536U}) {
    Random random(shards);
    KeyPlan plan(shards);
    plan.want_occurrences(true);
    for (int batch = 0; batch < 30; ++batch) {
      std::vector<uint64_t> keys(random.below(3000));
      const uint64_t range = 1 + random.below(batch % 3 == 0 ? 10 : 5000);
      for (uint64_t& key : keys) key = random.chance(0.5) ? random.below(range) : mix64(range);
      plan.build(keys);
      expect_plan_of(plan, keys, shards);
    }
  }
}

TEST(KeyPlan, GroupsHaveShardsOfTheirOwn) {
  const ModelShape shape{10, {4, 1}, 0, 3, {2, 0}};
  Random random(3);
  KeyPlan plan(shape);
  for (int batch = 0; batch < 20; ++batch) {
    std::vector<uint64_t> keys(random.below(3000));
    std::vector<uint8_t> groups(keys.size());
    std::map<std::pair<uint64_t, uint8_t>, uint32_t> reference;
    for (size_t i = 0; i < keys.size(); ++i) {
      keys[i] = random.below(400);  // the same key in several groups is several keys
      groups[i] = static_cast<uint8_t>(random.below(3));
      ++reference[{keys[i], groups[i]}];
    }
    plan.build(keys, groups);
    ASSERT_EQ(plan.unique(), reference.size());
    for (uint32_t s = 0; s < 10; ++s)
      for (uint32_t i = plan.begin()[s]; i < plan.begin()[s + 1]; ++i) {
        const auto group = static_cast<uint8_t>(shape.group_of(s));
        ASSERT_EQ(plan.counts()[i], (reference[{plan.keys()[i], group}]));
        ASSERT_EQ(shape.shard_of_key(plan.keys()[i], group), s);
        ASSERT_TRUE(shape.group_shards(group).has(s));
      }
    for (size_t i = 0; i < keys.size(); ++i) {
      const uint32_t at = plan.index()[i];
      ASSERT_EQ(plan.keys()[at], keys[i]);
      const ShardRange range = shape.group_shards(groups[i]);
      ASSERT_TRUE(at >= plan.begin()[range.begin] && at < plan.begin()[range.end]);
    }
  }
}

TEST(KeyPlan, EmptyBatchesAndOddKeys) {
  KeyPlan plan(3);
  plan.build({});
  expect_plan_of(plan, {}, 3);
  const std::vector<uint64_t> keys = {0, ~0ULL, 0, 1ULL << 63, ~0ULL, 0};
  plan.build(keys);
  expect_plan_of(plan, keys, 3);
  plan.build({});
  expect_plan_of(plan, {}, 3);
}

TEST(KeyPlan, GrowsInTheMiddleOfABatch) {
  KeyPlan plan(64);
  Random random(5);
  for (const size_t n : {100U, 50000U, 10U, 120000U, 2000U}) {
    std::vector<uint64_t> keys(n);
    for (uint64_t& key : keys) key = random.below(n * 2);
    plan.build(keys);
    expect_plan_of(plan, keys, 64);
  }
}

// Keys that begin their search near the end of the small table, so that chains wrap around it.
TEST(KeyPlan, CollidingKeys) {
  std::vector<uint64_t> keys;
  for (uint64_t key = 0; keys.size() < 300; ++key)
    if ((key_hash(key) & 4095) >= 4090) keys.push_back(key);
  keys.insert(keys.end(), keys.begin(), keys.begin() + 100);
  KeyPlan plan(16);
  for (int i = 0; i < 3; ++i) {
    plan.build(keys);
    expect_plan_of(plan, keys, 16);
  }
}

// Memory of former batches must not show through, however many there were.
TEST(KeyPlan, ManySmallBatches) {
  KeyPlan plan(4);
  Random random(8);
  for (int i = 0; i < 20000; ++i) {
    std::vector<uint64_t> keys(random.below(12));
    for (uint64_t& key : keys) key = random.below(40);
    plan.build(keys);
    expect_plan_of(plan, keys, 4);
  }
}

}  // namespace
}  // namespace flux
