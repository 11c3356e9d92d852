// WorkerThreads: runs a WorkerAgent with real threads: the calling thread turns the control
// executor, each lane has a thread and an executor of its own, data is opened on one more thread.
//
// The executors are the caller's choice: ThreadExecutor when all ports are in this process, IoLoop
// when they are sockets. Threads: run() by one thread; stop() from any.
// Failure: the outcome's Status. run() returns when the worker has left and all threads are joined.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "flux/base/thread_offload.h"
#include "flux/base/waiting_executor.h"
#include "flux/worker/agent.h"

namespace flux {

class WorkerThreads {
 public:
  using MakeExecutor = std::function<std::unique_ptr<WaitingExecutor>()>;
  // What a setup needs to know: the executor of each lane.
  using SetUp =
      std::function<Result<WorkerSetup>(const JoinReply&, const std::vector<WaitingExecutor*>&)>;

  // `control` is turned by run(); `job` lives on it.
  WorkerThreads(const AgentOptions& options, WaitingExecutor* control, JobPort* job,
                const MakeExecutor& make_executor, SetUp set_up);
  ~WorkerThreads();

  WorkerOutcome run();
  void stop(const std::string& why);
  // For a progress line: on the control thread only.
  const WorkerAgent& agent() const { return *agent_; }

 private:
  WaitingExecutor* control_;
  std::vector<std::unique_ptr<WaitingExecutor>> executors_;  // of lanes
  std::unique_ptr<ThreadOffload> offload_;
  std::unique_ptr<ThreadLaneDriver> driver_;
  std::unique_ptr<WorkerAgent> agent_;
  // Posted stops that come late find it gone.
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace flux
