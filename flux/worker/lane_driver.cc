#include "flux/worker/lane_driver.h"

#include <algorithm>
#include <utility>

namespace flux {
namespace {

// Steps a lane by tasks: one is posted whenever something happened, and one for its deadline.
class LaneTasks : public std::enable_shared_from_this<LaneTasks> {
 public:
  LaneTasks(std::weak_ptr<Lane> lane, std::function<void()> finished)
      : lane_(std::move(lane)), finished_(std::move(finished)) {}
  void wake(Executor* executor) {
    if (posted_) return;
    posted_ = true;
    executor->post(0, [self = shared_from_this()] { self->turn(); });
  }

 private:
  void turn() {
    posted_ = false;
    const auto lane = lane_.lock();
    if (!lane || !finished_) return;
    // One batch a task, so that others have their turn and time moves between them.
    const bool moved = lane->step();
    if (lane->finished()) {
      std::exchange(finished_, nullptr)();
      return;
    }
    if (moved) return wake(lane->executor());
    const TimeNs until = lane->next_time();
    if (timer_ != 0 && timer_ <= until) return;
    timer_ = until;
    lane->executor()->post(std::max<TimeNs>(0, until - lane->executor()->now_ns()),
                           [self = shared_from_this(), until] {
                             if (self->timer_ == until) self->timer_ = 0;
                             const auto lane = self->lane_.lock();
                             if (lane) self->wake(lane->executor());
                           });
  }

  std::weak_ptr<Lane> lane_;
  std::function<void()> finished_;
  bool posted_ = false;
  TimeNs timer_ = 0;
};

}  // namespace

void TaskLaneDriver::start(std::shared_ptr<Lane> lane, std::function<void()> finished) {
  const auto tasks = std::make_shared<LaneTasks>(lane, std::move(finished));
  lane->on_event([tasks, executor = lane->executor()] { tasks->wake(executor); });
  tasks->wake(lane->executor());
}

void ThreadLaneDriver::start(std::shared_ptr<Lane> lane, std::function<void()> finished) {
  threads_.emplace_back(
      [lane = std::move(lane), finished = std::move(finished), of = executor_of_]() mutable {
        WaitingExecutor* executor = of(lane->index());
        while (!lane->finished()) {
          if (lane->step())
            executor->poll();
          else
            executor->run_one_until(lane->next_time());
        }
        lane.reset();
        finished();
      });
}

void ThreadLaneDriver::join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace flux
