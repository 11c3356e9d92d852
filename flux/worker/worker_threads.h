// WorkerThreads: runs a WorkerAgent with real threads: the calling thread turns the control
// executor, the trainer has a thread and an executor of its own (which leads the team's), data is
// opened on one more thread.
//
// The trainer's executor is the caller's choice: ThreadExecutor when all ports are in this process,
// IoLoop when they are sockets. Threads: run() by one thread; stop() from any.
// Failure: the outcome's Status. run() returns when the worker has left and all threads are joined.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "flux/base/thread_offload.h"
#include "flux/base/waiting_executor.h"
#include "flux/worker/agent.h"

namespace flux {

class WorkerThreads {
 public:
  // `control` is turned by run(); `job` lives on it. `set_up` adds all but the executor.
  WorkerThreads(const AgentOptions& options, WaitingExecutor* control, JobPort* job,
                std::unique_ptr<WaitingExecutor> executor, SetUpWorker set_up);
  ~WorkerThreads();

  WorkerOutcome run();
  void stop(const std::string& why);
  // For a progress line: on the control thread only.
  const WorkerAgent& agent() const { return *agent_; }

 private:
  WaitingExecutor* control_;
  std::unique_ptr<WaitingExecutor> executor_;  // of the trainer
  std::unique_ptr<ThreadOffload> offload_;
  std::unique_ptr<ThreadTrainerDriver> driver_;
  std::unique_ptr<WorkerAgent> agent_;
  // Posted stops that come late find it gone.
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace flux
