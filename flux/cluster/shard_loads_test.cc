#include "flux/cluster/shard_loads.h"

#include <gtest/gtest.h>

namespace flux {
namespace {

using Rates = std::vector<uint64_t>;

TEST(ShardLoads, AreDifferencesByTheTimeBetweenReports) {
  ShardLoads loads(3);
  loads.reported(0, {{0, 1000}, {2, 50}}, 10 * kSecond);  // what was before it is not known
  loads.close_window();
  EXPECT_EQ(loads.rates(), (Rates{0, 0, 0}));
  EXPECT_FALSE(loads.knows(0));
  loads.reported(0, {{0, 1200}, {2, 50}}, 11 * kSecond);
  loads.reported(0, {{0, 1600}, {1, 8}, {2, 50}}, 12 * kSecond);
  loads.close_window();
  EXPECT_EQ(loads.rates(), (Rates{300, 4, 0}));
  EXPECT_TRUE(loads.knows(0));
  // Four seconds without a report that came: not less, not more.
  loads.reported(0, {{0, 2800}, {1, 16}, {2, 50}}, 16 * kSecond);
  loads.close_window();
  EXPECT_EQ(loads.rates(), (Rates{300, 2, 0}));
  loads.close_window();
  EXPECT_EQ(loads.rates(), (Rates{0, 0, 0}));
  EXPECT_FALSE(loads.knows(0)) << "it said nothing in this window";
}

TEST(ShardLoads, AShardThatMovedIsAskedForAtBothServers) {
  ShardLoads loads(1);
  loads.reported(0, {{0, 100}}, kSecond);
  loads.reported(1, {}, kSecond);
  loads.reported(0, {{0, 200}}, 2 * kSecond);
  loads.reported(1, {{0, 30}}, 2 * kSecond);
  loads.close_window();
  EXPECT_EQ(loads.rates(), Rates{130});
}

TEST(ShardLoads, ATotalThatFellBeganAnew) {
  ShardLoads loads(1);
  loads.reported(0, {{0, 1000}}, kSecond);
  loads.reported(0, {{0, 40}}, 2 * kSecond);
  loads.close_window();
  EXPECT_EQ(loads.rates(), Rates{40});
  loads.lost(0);
  EXPECT_FALSE(loads.knows(0));
  loads.reported(0, {{0, 10}}, 3 * kSecond);  // another one under that number
  loads.close_window();
  EXPECT_EQ(loads.rates(), Rates{0});
}

TEST(ShardLoads, ShardsThatTheJobHasNotAreLeftOut) {
  ShardLoads loads(1);
  loads.reported(0, {}, kSecond);
  loads.reported(0, {{0, 7}, {1, 9}, {~0U, 9}}, 2 * kSecond);
  loads.close_window();
  EXPECT_EQ(loads.rates(), Rates{7});
}

}  // namespace
}  // namespace flux
