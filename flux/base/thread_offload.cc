#include "flux/base/thread_offload.h"

#include <utility>

namespace flux {

ThreadOffload::ThreadOffload(Executor* executor)
    : executor_(executor), thread_([this] { serve(); }) {}

ThreadOffload::~ThreadOffload() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void ThreadOffload::run(std::function<void()> work, std::function<void()> done) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back({std::move(work), std::move(done)});
  }
  changed_.notify_one();
}

void ThreadOffload::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
    if (stop_) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job.work();
    job.work = nullptr;  // what it holds goes before `done` may free more
    executor_->post(0, std::move(job.done));
    lock.lock();
  }
}

}  // namespace flux
