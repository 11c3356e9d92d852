// For tests of stubs and services: an executor whose time the test moves. Not thread-safe; nothing
// here is linked into the binary.
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "flux/base/executor.h"

namespace flux {

// Tasks in the order of their time; time stands still but for run_until().
class TestExecutor final : public Executor {
 public:
  TimeNs now_ns() const override { return now_; }
  void post(TimeNs delay_ns, std::function<void()> task) override {
    tasks_.emplace(now_ + delay_ns, std::move(task));
  }
  // Runs tasks, moving time to each, until `done()` or nothing is left before `deadline`.
  bool run_until(const std::function<bool()>& done, TimeNs deadline = 3600 * kSecond) {
    while (!done()) {
      if (tasks_.empty() || tasks_.begin()->first > deadline) return false;
      auto node = tasks_.extract(tasks_.begin());
      now_ = node.key();
      node.mapped()();
    }
    return true;
  }
  void run_for(TimeNs time) {
    const TimeNs end = now_ + time;
    (void)run_until([] { return false; }, end);
    now_ = end;
  }

 private:
  TimeNs now_ = 0;
  std::multimap<TimeNs, std::function<void()>> tasks_;
};

}  // namespace flux
