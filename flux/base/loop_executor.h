// LoopExecutor: an executor that runs tasks on the thread that calls run_ready(), in time order
// and, at equal times, in the order they were posted. Used by a trainer thread, which turns it
// between batches, so that no thread hop is paid. Not thread-safe.
#pragma once

#include <queue>
#include <vector>

#include "flux/base/executor.h"

namespace flux {

class LoopExecutor final : public Executor {
 public:
  TimeNs now_ns() const override { return steady_now_ns(); }
  void post(TimeNs delay_ns, std::function<void()> task) override;
  // Runs every task whose time has come, including those they post; returns how many ran.
  size_t run_ready();
  bool idle() const { return tasks_.empty(); }
  // Time of the earliest task; idle() must be false.
  TimeNs next_time_ns() const { return tasks_.top().time_ns; }

 private:
  struct Task {
    TimeNs time_ns;
    uint64_t order;
    std::function<void()> run;
    bool operator<(const Task& other) const {
      return time_ns != other.time_ns ? time_ns > other.time_ns : order > other.order;
    }
  };
  std::priority_queue<Task> tasks_;
  uint64_t order_ = 0;
};

}  // namespace flux
