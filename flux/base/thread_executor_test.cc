// Tasks from several threads, in time order; waits that end when a task comes.
#include "flux/base/thread_executor.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "flux/base/thread_offload.h"

namespace flux {
namespace {

TimeNs hand_time = 0;

// Time moves only by hand: however slowly this thread runs, posts are made at the times they are
// meant for.
TEST(ThreadExecutor, RunsInTimeOrderAndThenInTheOrderOfPosts) {
  hand_time = 1000;
  ThreadExecutor executor([] { return hand_time; });
  std::vector<int> ran;
  executor.post(2, [&] { ran.push_back(4); });
  executor.post(1, [&] { ran.push_back(2); });
  executor.post(1, [&] { ran.push_back(3); });
  executor.post(0, [&] {
    ran.push_back(0);
    executor.post(0, [&] { ran.push_back(1); });
  });
  EXPECT_EQ(executor.poll(), 2U);
  EXPECT_EQ(ran, (std::vector<int>{0, 1}));
  hand_time += 1;
  EXPECT_EQ(executor.poll(), 2U);
  EXPECT_EQ(ran, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_FALSE(executor.run_one_until(hand_time)) << "the last one's time has not come";
  hand_time += 1;
  EXPECT_TRUE(executor.run_one_until(hand_time));
  EXPECT_EQ(ran, (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(executor.poll(), 0U);
  EXPECT_FALSE(executor.run_one_until(hand_time)) << "nothing is left";
}

TEST(ThreadExecutor, ATaskOfAnotherThreadEndsTheWait) {
  ThreadExecutor executor;
  constexpr int kThreads = 4, kTasks = 500;
  std::vector<std::thread> threads;
  std::vector<int> seen(kThreads, 0);
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kTasks; ++i)
        executor.post(0, [&seen, t, i] {
          EXPECT_EQ(seen[t], i) << "those of one thread keep their order";
          ++seen[t];
        });
    });
  for (int i = 0; i < kThreads * kTasks; ++i)
    ASSERT_TRUE(executor.run_one_until(executor.now_ns() + 60 * kSecond));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(seen, std::vector<int>(kThreads, kTasks));
}

TEST(ThreadOffload, WorksElsewhereAndAnswersHere) {
  ThreadExecutor executor;
  const auto here = std::this_thread::get_id();
  std::vector<int> done;
  {
    ThreadOffload offload(&executor);
    for (int i = 0; i < 20; ++i) {
      auto elsewhere = std::make_shared<bool>(false);
      offload.run([elsewhere, here] { *elsewhere = std::this_thread::get_id() != here; },
                  [&done, elsewhere, i] {
                    EXPECT_TRUE(*elsewhere);
                    done.push_back(i);
                  });
    }
    while (done.size() < 20) ASSERT_TRUE(executor.run_one_until(executor.now_ns() + 60 * kSecond));
  }
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
}

}  // namespace
}  // namespace flux
