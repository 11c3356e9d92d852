#include "flux/worker/worker_threads.h"

#include <utility>

namespace flux {

WorkerThreads::WorkerThreads(const AgentOptions& options, WaitingExecutor* control, JobPort* job,
                             const MakeExecutor& make_executor, SetUp set_up)
    : control_(control), offload_(std::make_unique<ThreadOffload>(control)) {
  std::vector<WaitingExecutor*> lanes;
  for (uint32_t i = 0; i < options.join.lanes; ++i) {
    executors_.push_back(make_executor());
    lanes.push_back(executors_.back().get());
  }
  driver_ = std::make_unique<ThreadLaneDriver>([lanes](uint32_t lane) { return lanes[lane]; });
  agent_ = std::make_unique<WorkerAgent>(
      options, control, job, offload_.get(), driver_.get(),
      [lanes, set_up = std::move(set_up)](const JoinReply& reply) { return set_up(reply, lanes); });
}

// The offload first: its thread posts to the control executor on the agent's behalf.
WorkerThreads::~WorkerThreads() {
  driver_->join();
  offload_.reset();
  agent_.reset();
}

WorkerOutcome WorkerThreads::run() {
  WorkerOutcome result;
  bool over = false;
  agent_->start([&](const WorkerOutcome& outcome) {
    result = outcome;
    over = true;
  });
  while (!over) control_->run_one_until(control_->now_ns() + kSecond);
  driver_->join();
  return result;
}

void WorkerThreads::stop(const std::string& why) {
  control_->post(0, [weak = std::weak_ptr<int>(alive_), this, why] {
    if (weak.lock()) agent_->stop(why);
  });
}

}  // namespace flux
