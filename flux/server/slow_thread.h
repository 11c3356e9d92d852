// SlowThread: one thread for work that must not hold up a connection: tasks in the order they came,
// one at a time. Bounded: run() is false when kTasksMax wait. Threads: any. Its end waits for the
// task that runs and drops the others without running them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace flux {

class SlowThread {
 public:
  static constexpr size_t kTasksMax = 64;

  SlowThread() : thread_([this] { work(); }) {}
  ~SlowThread();
  bool run(std::function<void()> task);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;  // guarded by mutex_, as is stop_
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace flux
