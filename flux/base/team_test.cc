#include "flux/base/team.h"

#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "flux/base/executor.h"

namespace flux {
namespace {

// Works for so long.
void pass_time(TimeNs time) {
  const TimeNs end = steady_now_ns() + time;
  while (steady_now_ns() < end) {
  }
}

TEST(Team, DoesEachBlockOnce) {
  for (const uint32_t members : {1U, 2U, 3U, 8U}) {
    Team team(members);
    EXPECT_EQ(team.members(), members);
    for (uint32_t run = 0; run < 2000; ++run) {
      const uint32_t blocks = run % 37;
      std::vector<uint32_t> done(blocks, 0);
      team.run(blocks, [&](uint32_t block, uint32_t member) {
        ASSERT_LT(member, members);
        ++done[block];
      });
      for (const uint32_t times : done) ASSERT_EQ(times, 1U);
    }
  }
}

// What members wrote is seen when run() has returned, and what was written before by members.
TEST(Team, RunsFollowEachOther) {
  Team team(4);
  std::vector<uint64_t> numbers(64);
  std::iota(numbers.begin(), numbers.end(), 0);
  std::vector<uint64_t> want = numbers;
  for (int run = 0; run < 5000; ++run) {
    std::vector<uint64_t> next(64);
    team.run(64, [&](uint32_t i, uint32_t) { next[i] = numbers[i] + numbers[(i + 1) % 64]; });
    numbers = next;
    for (uint32_t i = 0; i < 64; ++i) next[i] = want[i] + want[(i + 1) % 64];
    want = next;
  }
  EXPECT_EQ(numbers, want);
}

// Members that sleep are woken, also while others fall asleep.
TEST(Team, WakesWhoSleeps) {
  Team team(3);
  for (int run = 0; run < 200; ++run) {
    std::atomic<uint32_t> done{0};
    pass_time(TimeNs{run} * kMillisecond / 1000);
    team.run(3, [&](uint32_t, uint32_t) { done.fetch_add(1); });
    ASSERT_EQ(done.load(), 3U);
  }
}

// The caller sleeps while a member works, and is woken by the last block.
TEST(Team, CallerWaitsForASlowBlock) {
  Team team(2);
  for (int run = 0; run < 20; ++run) {
    std::atomic<uint32_t> begun{0}, done{0};
    team.run(2, [&](uint32_t, uint32_t) {
      // Each block waits for the other to begin, so both members have one.
      begun.fetch_add(1);
      while (begun.load() < 2) std::this_thread::yield();
      if (done.fetch_add(1) == 0) pass_time(kMillisecond / 5);
    });
    ASSERT_EQ(done.load(), 2U);
  }
}

TEST(Team, EndsWithoutARun) {
  for (int i = 0; i < 50; ++i) const Team team(4);
}

}  // namespace
}  // namespace flux
