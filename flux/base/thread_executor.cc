#include "flux/base/thread_executor.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace flux {

void ThreadExecutor::post(TimeNs delay_ns, std::function<void()> task) {
  const TimeNs at = clock_() + delay_ns;
  {
    const std::lock_guard lock(mutex_);
    const bool first = tasks_.empty() || at < tasks_.top().time_ns;
    tasks_.push(Task{at, order_++, std::move(task)});
    if (!first) return;  // whoever waits, waits for an earlier one
  }
  changed_.notify_one();
}

std::function<void()> ThreadExecutor::take(TimeNs now) {
  if (tasks_.empty() || tasks_.top().time_ns > now) return nullptr;
  auto run = std::move(const_cast<Task&>(tasks_.top()).run);  // popped before anyone can look
  tasks_.pop();
  return run;
}

size_t ThreadExecutor::poll() {
  size_t ran = 0;
  while (true) {
    std::unique_lock lock(mutex_);
    if (tasks_.empty()) return ran;
    const auto run = take(clock_());
    lock.unlock();
    if (!run) return ran;
    run();
    ++ran;
  }
}

bool ThreadExecutor::run_one_until(TimeNs deadline_ns) {
  constexpr TimeNs kLongest = 3600 * kSecond;  // so that no sum overflows
  std::unique_lock lock(mutex_);
  while (true) {
    const TimeNs now = clock_();
    if (const auto run = take(now)) {
      lock.unlock();
      run();
      return true;
    }
    if (now >= deadline_ns) return false;
    TimeNs until = std::min(deadline_ns, now + kLongest);
    if (!tasks_.empty()) until = std::min(until, tasks_.top().time_ns);
    changed_.wait_for(lock, std::chrono::nanoseconds(until - now));
  }
}

}  // namespace flux
