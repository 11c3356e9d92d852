// ThreadOffload: slow work on a thread of its own, in the order it was asked for; the answer goes
// back to the executor of whoever asked.
//
// Threads: run() from any thread; `work` on the offload's thread, `done` on the executor.
// Destruction drops what has not begun and waits for what has.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "flux/base/executor.h"
#include "flux/base/offload.h"

namespace flux {

class ThreadOffload final : public Offload {
 public:
  explicit ThreadOffload(Executor* executor);
  ~ThreadOffload() override;
  void run(std::function<void()> work, std::function<void()> done) override;

 private:
  struct Job {
    std::function<void()> work, done;
  };
  void serve();

  Executor* const executor_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace flux
