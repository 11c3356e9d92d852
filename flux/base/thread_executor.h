// ThreadExecutor: tasks from any thread, run by the one thread that turns it, in time order and, at
// equal times, in the order they were posted. The waiting executor of roles without sockets.
//
// Tasks that are left when it is destroyed are dropped without being run.
// Threads: post() and now_ns() from any; poll() and run_one_until() by the thread that turns it.
#pragma once

#include <condition_variable>
#include <mutex>
#include <queue>
#include <vector>

#include "flux/base/waiting_executor.h"

namespace flux {

class ThreadExecutor final : public WaitingExecutor {
 public:
  using Clock = TimeNs (*)();
  // `clock`: of tests that move time by hand, which then turn it by poll() alone.
  explicit ThreadExecutor(Clock clock = steady_now_ns) : clock_(clock) {}

  TimeNs now_ns() const override { return clock_(); }
  void post(TimeNs delay_ns, std::function<void()> task) override;
  size_t poll() override;
  bool run_one_until(TimeNs deadline_ns) override;

 private:
  struct Task {
    TimeNs time_ns;
    uint64_t order;
    std::function<void()> run;
    bool operator<(const Task& other) const {
      return time_ns != other.time_ns ? time_ns > other.time_ns : order > other.order;
    }
  };
  // The next task whose time has come, or an empty function. With the lock held.
  std::function<void()> take(TimeNs now);

  const Clock clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::priority_queue<Task> tasks_;
  uint64_t order_ = 0;
};

}  // namespace flux
