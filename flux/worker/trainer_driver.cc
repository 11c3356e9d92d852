#include "flux/worker/trainer_driver.h"

#include <algorithm>
#include <utility>

namespace flux {
namespace {

// Steps a trainer by tasks: one is posted whenever something happened, and one for its deadline.
class TrainerTasks : public std::enable_shared_from_this<TrainerTasks> {
 public:
  TrainerTasks(std::weak_ptr<Trainer> trainer, std::function<void()> finished)
      : trainer_(std::move(trainer)), finished_(std::move(finished)) {}
  void wake(Executor* executor) {
    if (posted_) return;
    posted_ = true;
    executor->post(0, [self = shared_from_this()] { self->turn(); });
  }

 private:
  void turn() {
    posted_ = false;
    const auto trainer = trainer_.lock();
    if (!trainer || !finished_) return;
    // One batch a task, so that others have their turn and time moves between them.
    const bool moved = trainer->step();
    if (trainer->finished()) {
      std::exchange(finished_, nullptr)();
      return;
    }
    if (moved) return wake(trainer->executor());
    const TimeNs until = trainer->next_time();
    if (timer_ != 0 && timer_ <= until) return;
    timer_ = until;
    trainer->executor()->post(std::max<TimeNs>(0, until - trainer->executor()->now_ns()),
                              [self = shared_from_this(), until] {
                                if (self->timer_ == until) self->timer_ = 0;
                                const auto trainer = self->trainer_.lock();
                                if (trainer) self->wake(trainer->executor());
                              });
  }

  std::weak_ptr<Trainer> trainer_;
  std::function<void()> finished_;
  bool posted_ = false;
  TimeNs timer_ = 0;
};

}  // namespace

void TaskTrainerDriver::start(std::shared_ptr<Trainer> trainer, std::function<void()> finished) {
  const auto tasks = std::make_shared<TrainerTasks>(trainer, std::move(finished));
  trainer->on_event([tasks, executor = trainer->executor()] { tasks->wake(executor); });
  tasks->wake(trainer->executor());
}

void ThreadTrainerDriver::start(std::shared_ptr<Trainer> trainer, std::function<void()> finished) {
  thread_ = std::thread([trainer = std::move(trainer), finished = std::move(finished),
                         executor = executor_]() mutable {
    while (!trainer->finished()) {
      if (trainer->step())
        executor->poll();
      else
        executor->run_one_until(trainer->next_time());
    }
    trainer.reset();
    finished();
  });
}

void ThreadTrainerDriver::join() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace flux
