// The factor against the closed form of the line that it has to follow.
#include "flux/cluster/lr_policy.h"

#include <cmath>

#include <gtest/gtest.h>

namespace flux {
namespace {

TEST(LrPolicy, NoneIsAlwaysOne) {
  LrPolicy policy({"none", 4, 10}, 1);
  EXPECT_EQ(policy.factor(), 1.0F);
  policy.workers(8);
  policy.leased(5);
  EXPECT_EQ(policy.factor(), 1.0F);
  policy.leased(50);
  EXPECT_EQ(policy.factor(), 1.0F);
}

TEST(LrPolicy, BeginsAtItsTarget) {
  EXPECT_EQ(LrPolicy({"linear", 0, 100}, 4).factor(), 1.0F);
  EXPECT_EQ(LrPolicy({"linear", 2, 100}, 4).factor(), 2.0F);
  EXPECT_EQ(LrPolicy({"sqrt", 16, 100}, 4).factor(), 0.5F);
  EXPECT_EQ(LrPolicy({"linear", 0, 100}, 0).factor(), 1.0F) << "nobody yet";
}

TEST(LrPolicy, WithoutWarmupItJumps) {
  LrPolicy policy({"linear", 0, 0}, 2);
  policy.workers(4);
  EXPECT_EQ(policy.factor(), 2.0F);
  policy.workers(0);
  EXPECT_EQ(policy.factor(), 2.0F) << "nobody trains";
  policy.workers(1);
  EXPECT_EQ(policy.factor(), 0.5F);
}

// In steps of any size the factor is on the line from the old factor to the new one.
TEST(LrPolicy, WarmsUpAlongALine) {
  for (const uint32_t step : {1U, 3U, 7U, 32U}) {
    LrPolicy policy({"sqrt", 0, 100}, 1);
    policy.workers(4);
    for (uint32_t batches = 0; batches < 130; batches += step) {
      const double want = 1 + std::min(1.0, batches / 100.0);
      EXPECT_NEAR(policy.factor(), want, 1e-6) << "after " << batches;
      policy.leased(step);
    }
    EXPECT_EQ(policy.factor(), 2.0F) << "exactly, in the end";
    policy.workers(1);
    EXPECT_EQ(policy.factor(), 2.0F) << "down goes by a line too";
    policy.leased(50);
    EXPECT_NEAR(policy.factor(), 1.5, 1e-6);
    policy.leased(50);
    EXPECT_EQ(policy.factor(), 1.0F);
  }
}

TEST(LrPolicy, AChangeOnTheWayStartsFromWhereItIs) {
  LrPolicy policy({"linear", 0, 100}, 1);
  policy.workers(3);
  policy.leased(50);
  EXPECT_NEAR(policy.factor(), 2.0, 1e-6);
  policy.workers(2);
  EXPECT_NEAR(policy.factor(), 2.0, 1e-6) << "no jump";
  policy.workers(1);
  policy.leased(25);
  EXPECT_NEAR(policy.factor(), 1.75, 1e-6);
  policy.workers(1);
  policy.leased(75);
  EXPECT_EQ(policy.factor(), 1.0F) << "the same number is no change";
}

TEST(LrPolicy, GoesOnFromItsState) {
  const LrPolicyOptions options{"linear", 0, 100};
  LrPolicy policy(options, 2);
  policy.workers(6);
  policy.leased(30);
  LrPolicy back(options, policy.state());
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(back.factor(), policy.factor());
    EXPECT_EQ(back.state(), policy.state());
    back.leased(9);
    policy.leased(9);
  }
  EXPECT_EQ(policy.factor(), 3.0F);
  // With another rule it moves there without a jump.
  LrPolicy other({"none", 0, 10}, policy.state());
  EXPECT_EQ(other.factor(), 3.0F);
  other.leased(5);
  EXPECT_NEAR(other.factor(), 2.0, 1e-6);
  other.leased(5);
  EXPECT_EQ(other.factor(), 1.0F);
}

TEST(LrPolicy, NonsenseStaysInBounds) {
  EXPECT_EQ(LrPolicy({"linear", 1, 0}, 4'000'000'000U).factor(), 1000.0F);
  EXPECT_EQ(LrPolicy({"linear", 4'000'000'000U, 0}, 1).factor(), 0.001F);
  LrPolicyState state;
  state.reference = 0;
  state.workers = 0;
  state.factor = std::nan("");
  state.left = ~0ULL;
  LrPolicy policy({"sqrt", 0, 10}, state);
  EXPECT_EQ(policy.factor(), 1.0F);
  policy.leased(10);
  EXPECT_EQ(policy.state().left, 0U);
}

}  // namespace
}  // namespace flux
