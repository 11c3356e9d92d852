// LaneDriver: who turns the lanes. A thread each with real time (ThreadLaneDriver), or tasks on the
// lane's own executor (TaskLaneDriver: the simulator, and embedded runs on one thread).
//
// Threads: start() from the agent's; `finished` is called once, on the thread of the lane.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "flux/base/waiting_executor.h"
#include "flux/worker/lane.h"

namespace flux {

class LaneDriver {
 public:
  virtual ~LaneDriver() = default;
  virtual void start(std::shared_ptr<Lane> lane, std::function<void()> finished) = 0;
};

class TaskLaneDriver final : public LaneDriver {
 public:
  void start(std::shared_ptr<Lane> lane, std::function<void()> finished) override;
};

// The lane's executor has to be a WaitingExecutor that nobody else turns: `executor_of(index)`.
class ThreadLaneDriver final : public LaneDriver {
 public:
  using ExecutorOf = std::function<WaitingExecutor*(uint32_t lane)>;
  explicit ThreadLaneDriver(ExecutorOf executor_of) : executor_of_(std::move(executor_of)) {}
  ~ThreadLaneDriver() override { join(); }
  void start(std::shared_ptr<Lane> lane, std::function<void()> finished) override;
  // Waits for the threads: only when all lanes are finished or will be soon.
  void join();

 private:
  ExecutorOf executor_of_;
  std::vector<std::thread> threads_;
};

}  // namespace flux
