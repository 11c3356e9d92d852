#include "flux/base/kill_point.h"

#include <csignal>
#include <cstdlib>
#include <set>
#include <thread>

#include <gtest/gtest.h>

namespace flux {
namespace {

TEST(KillPoint, NamesAreDistinctAndAllParse) {
  std::set<std::string> seen;
  for (const std::string& name : kill_point_names()) {
    EXPECT_TRUE(seen.insert(name).second) << name;
    const auto order = parse_kill_order(name + ":7");
    ASSERT_TRUE(order.is_ok()) << order.status().message();
    EXPECT_EQ(order.value().pass, 7U);
    EXPECT_EQ(kill_point_name(order.value().point), name);
  }
  EXPECT_GE(seen.size(), 20U);
  EXPECT_EQ(parse_kill_order("seal").value().pass, 1U);
}

TEST(KillPoint, RefusesWhatIsNone) {
  for (const char* text :
       {"", ":", "seal:", "seal:0", "seal:-1", "seal:1x", "seal:99999999999", "aply:1", "SEAL"}) {
    const auto order = parse_kill_order(text);
    ASSERT_FALSE(order.is_ok()) << text;
    EXPECT_EQ(order.status().code(), Code::kInvalid) << text;
  }
  const auto near = parse_kill_order("after_aply:1");
  EXPECT_NE(near.status().message().find("after_apply"), std::string::npos);
}

// Passes one point so often, and another in between; then leaves with 7.
[[noreturn]] void pass(int times) {
  for (int i = 0; i < times; ++i) {
    kill_point(KillPoint::kSeal);
    kill_point(KillPoint::kMidSave);
  }
  std::_Exit(7);
}

TEST(KillPointDeathTest, DiesAtTheGivenPassOnly) {
  const auto armed = [](const char* text, int times) {
    arm_kill_point(parse_kill_order(text).value());
    pass(times);
  };
  EXPECT_EXIT(pass(9), ::testing::ExitedWithCode(7), "");
  EXPECT_EXIT(armed("mid_save:3", 2), ::testing::ExitedWithCode(7), "");
  EXPECT_EXIT(armed("mid_save:3", 3), ::testing::KilledBySignal(SIGKILL), "");
  EXPECT_EXIT(armed("seal", 1), ::testing::KilledBySignal(SIGKILL), "");
  EXPECT_EXIT(armed("promote", 1000), ::testing::ExitedWithCode(7), "");
}

TEST(KillPointDeathTest, DisarmedIsHarmlessAndTheLastOrderCounts) {
  const auto changed = [] {
    arm_kill_point({KillPoint::kSeal, 1});
    arm_kill_point({KillPoint::kPromote, 1});
    kill_point(KillPoint::kSeal);
    disarm_kill_points();
    kill_point(KillPoint::kPromote);
    pass(1);
  };
  EXPECT_EXIT(changed(), ::testing::ExitedWithCode(7), "");
}

TEST(KillPointDeathTest, PassesOfAllThreadsCountTogether) {
  const auto together = [](uint32_t at) {
    arm_kill_point({KillPoint::kMark, at});
    const auto ten = [] {
      for (int i = 0; i < 10; ++i) kill_point(KillPoint::kMark);
    };
    std::thread one(ten), two(ten);
    one.join();
    two.join();
    std::_Exit(7);
  };
  EXPECT_EXIT(together(21), ::testing::ExitedWithCode(7), "");
  EXPECT_EXIT(together(20), ::testing::KilledBySignal(SIGKILL), "");
}

}  // namespace
}  // namespace flux
