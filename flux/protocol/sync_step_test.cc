// Steps of a round: each batch that is not skipped is in exactly one step, that of its position.
#include "flux/protocol/sync_step.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "flux/base/random.h"

namespace flux {
namespace {

TEST(SyncStep, EveryBatchOfTheRoundIsInOneStep) {
  Random random(2);
  for (int i = 0; i < 2000; ++i) {
    SyncRound round{7, {}};
    std::set<BatchId> expected;
    for (uint32_t m = static_cast<uint32_t>(random.below(5)); m > 0; --m) {
      const RoundMember member{{1, 2, 3, m},
                               static_cast<uint32_t>(1 + random.below(32)),
                               static_cast<uint32_t>(random.next() & random.next())};
      round.members.push_back(member);
      for (uint8_t b = 0; b < member.batches; ++b)
        if (((member.skip_mask >> b) & 1) == 0)
          expected.insert({member.block, b, static_cast<uint8_t>(member.batches)});
    }
    std::set<BatchId> found;
    const uint32_t steps = sync_steps(round);
    for (uint32_t s = 0; s < steps + 3; ++s) {
      const SyncStep step = sync_step(round, s);
      EXPECT_EQ(step.round, 7U);
      EXPECT_EQ(step.step, s);
      EXPECT_TRUE(std::is_sorted(step.ids.begin(), step.ids.end()));
      EXPECT_TRUE(s + 1 != steps || !step.ids.empty());
      EXPECT_TRUE(s < steps || step.ids.empty());
      for (const BatchId& id : step.ids) {
        EXPECT_EQ(id.batch, s);
        EXPECT_TRUE(found.insert(id).second);
      }
    }
    EXPECT_EQ(found, expected);
  }
}

TEST(SyncStep, ARoundThatNobodyMakesIsHarmless) {
  const SyncRound round{1, {{{0, 0, 0, 1}, ~0U, 0}, {{0, 0, 0, 2}, 0, 0}, {{0, 0, 0, 3}, 4, ~0U}}};
  EXPECT_EQ(sync_steps(round), kBatchesPerBlockMax);
  EXPECT_EQ(sync_step(round, 31).ids.size(), 1U);
  EXPECT_EQ(sync_step(round, 32).ids.size(), 0U);
  EXPECT_EQ(sync_step(round, ~0U).ids.size(), 0U);
  EXPECT_EQ(sync_steps({}), 0U);
}

}  // namespace
}  // namespace flux
