// SimExecutor: virtual time for a whole cluster in one thread. Tasks run in time order; ties run in
// a seeded random order, so that a seed also decides races. Linked by tests only.
// Not thread-safe. The same seed and the same posts give the same run, step by step.
#pragma once

#include <queue>
#include <utility>
#include <vector>

#include "flux/base/executor.h"
#include "flux/base/random.h"

namespace flux {

class SimExecutor final : public Executor {
 public:
  explicit SimExecutor(uint64_t seed) : random_(seed) {}
  TimeNs now_ns() const override { return now_; }
  void post(TimeNs delay_ns, std::function<void()> task) override {
    tasks_.push(Task{now_ + delay_ns, random_.next(), std::move(task)});
  }
  // Runs the next task and moves time to it; false when there is none.
  bool step() {
    if (tasks_.empty()) return false;
    auto run = std::move(const_cast<Task&>(tasks_.top()).run);  // popped before anyone can look
    now_ = tasks_.top().time;
    tasks_.pop();
    run();
    return true;
  }
  // Drops every task unrun; what they hold dies while everything else is still there.
  void clear() {
    while (!tasks_.empty()) {
      const auto dropped = std::exchange(tasks_, {});
      (void)dropped;
    }
  }
  Random& random() { return random_; }

 private:
  struct Task {
    TimeNs time;
    uint64_t tie;
    std::function<void()> run;
    bool operator<(const Task& other) const {
      return time != other.time ? time > other.time : tie > other.tie;
    }
  };
  std::priority_queue<Task> tasks_;
  TimeNs now_ = 0;
  Random random_;
};

}  // namespace flux
