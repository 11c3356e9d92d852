// For tests only: an executor whose time stands still until the test moves it.
// Tasks run inside run_until(), in the order of their times. Not thread-safe.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "flux/base/executor.h"

namespace flux {

class ManualExecutor final : public Executor {
 public:
  explicit ManualExecutor(TimeNs now = 0) : now_(now) {}
  TimeNs now_ns() const override { return now_; }
  void post(TimeNs delay_ns, std::function<void()> task) override {
    tasks_.emplace(now_ + std::max<TimeNs>(delay_ns, 0), std::move(task));
  }
  void run_until(TimeNs end) {
    while (!tasks_.empty() && tasks_.begin()->first <= end) {
      const auto node = tasks_.extract(tasks_.begin());
      now_ = node.key();
      node.mapped()();
    }
    now_ = end;
  }

 private:
  TimeNs now_;
  std::multimap<TimeNs, std::function<void()>> tasks_;
};

}  // namespace flux
