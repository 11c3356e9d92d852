#include "flux/base/loop_executor.h"

#include <chrono>
#include <utility>

namespace flux {

TimeNs steady_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void LoopExecutor::post(TimeNs delay_ns, std::function<void()> task) {
  tasks_.push(Task{now_ns() + delay_ns, order_++, std::move(task)});
}

size_t LoopExecutor::run_ready() {
  size_t ran = 0;
  while (!tasks_.empty() && tasks_.top().time_ns <= now_ns()) {
    auto run = std::move(const_cast<Task&>(tasks_.top()).run);  // popped before anyone can look
    tasks_.pop();
    run();
    ++ran;
  }
  return ran;
}

}  // namespace flux
