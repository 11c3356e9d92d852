// Push session + shard + block queue under loss, doubling, reordering and crashes, from seeds.
#include "flux/testing/push_sim.h"

#include <gtest/gtest.h>

namespace flux {
namespace {

constexpr uint64_t kSeeds = 1000;

TEST(PushSim, EveryBatchIsAppliedOnceOnEveryShard) {
  uint64_t crashes = 0, duplicates = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const PushSimResult result = run_push_sim(seed);
    ASSERT_TRUE(result.ok) << "seed " << seed << ": " << result.failure;
    crashes += result.crashes;
    duplicates += result.duplicates;
  }
  // The faults must have happened, else the runs above prove nothing.
  EXPECT_GT(crashes, kSeeds);
  EXPECT_GT(duplicates, kSeeds);
}

TEST(PushSim, ASeedReplaysExactly) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const PushSimResult a = run_push_sim(seed);
    const PushSimResult b = run_push_sim(seed);
    EXPECT_EQ(a.trace_hash, b.trace_hash) << "seed " << seed;
    EXPECT_EQ(a.steps, b.steps);
  }
}

// Message by message the checker must be able to fail: each planted bug is found.
class Planted : public testing::TestWithParam<uint32_t> {};

TEST_P(Planted, IsFoundWithinAThousandSeeds) {
  const auto bug = static_cast<PlantedBug>(GetParam());
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const PushSimResult result = run_push_sim(seed, bug);
    if (result.ok) continue;
    RecordProperty("seed", static_cast<int>(seed));
    SUCCEED() << planted_bug_name(bug) << " found by seed " << seed << ": " << result.failure;
    return;
  }
  FAIL() << planted_bug_name(bug) << " was not found in " << kSeeds << " seeds";
}

INSTANTIATE_TEST_SUITE_P(Bugs, Planted, testing::Range(1U, kPlantedBugs));

}  // namespace
}  // namespace flux
