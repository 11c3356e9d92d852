#include "flux/worker/worker_threads.h"

#include <utility>

namespace flux {

WorkerThreads::WorkerThreads(const AgentOptions& options, WaitingExecutor* control, JobPort* job,
                             std::unique_ptr<WaitingExecutor> executor, SetUpWorker set_up)
    : control_(control),
      executor_(std::move(executor)),
      offload_(std::make_unique<ThreadOffload>(control)),
      driver_(std::make_unique<ThreadTrainerDriver>(executor_.get())),
      agent_(std::make_unique<WorkerAgent>(options, control, job, offload_.get(), driver_.get(),
                                           [executor = executor_.get(), set_up = std::move(set_up)](
                                               const JoinReply& reply) -> Result<WorkerSetup> {
                                             FLUX_ASSIGN_OR_RETURN(WorkerSetup setup,
                                                                   set_up(reply));
                                             setup.executor = executor;
                                             return setup;
                                           })) {}

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
