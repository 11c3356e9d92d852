#include "flux/server/slow_thread.h"

#include <utility>

namespace flux {

SlowThread::~SlowThread() {
  std::deque<std::function<void()>>
      dropped;  // freed without the lock: a task may answer as it goes
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    dropped.swap(tasks_);
  }
  changed_.notify_one();
  thread_.join();
}

bool SlowThread::run(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (stop_ || tasks_.size() >= kTasksMax) return false;
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
  return true;
}

void SlowThread::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
    if (stop_) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
  }
}

}  // namespace flux
