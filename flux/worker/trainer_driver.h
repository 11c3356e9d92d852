// TrainerDriver: who turns the trainer. A thread with real time (ThreadTrainerDriver), or tasks on
// the trainer's own executor (TaskTrainerDriver: the simulator).
//
// Threads: start() from the agent's; `finished` is called once, on the thread of the trainer.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "flux/base/waiting_executor.h"
#include "flux/worker/trainer.h"

namespace flux {

class TrainerDriver {
 public:
  virtual ~TrainerDriver() = default;
  virtual void start(std::shared_ptr<Trainer> trainer, std::function<void()> finished) = 0;
};

class TaskTrainerDriver final : public TrainerDriver {
 public:
  void start(std::shared_ptr<Trainer> trainer, std::function<void()> finished) override;
};

class ThreadTrainerDriver final : public TrainerDriver {
 public:
  // That of the trainer; nobody else turns it.
  explicit ThreadTrainerDriver(WaitingExecutor* executor) : executor_(executor) {}
  ~ThreadTrainerDriver() override { join(); }
  void start(std::shared_ptr<Trainer> trainer, std::function<void()> finished) override;
  // Waits for the thread: only when the trainer is finished or will be soon.
  void join();

 private:
  WaitingExecutor* executor_;
  std::thread thread_;
};

}  // namespace flux
