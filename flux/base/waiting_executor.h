// WaitingExecutor: an executor whose one thread can wait for the next task.
//
// What a driver thread of a role turns: a lane between batches, an agent all the time.
// Implementations: ThreadExecutor (tasks only), IoLoop (tasks and sockets).
// Threads: post() from any thread; the rest by the thread that turns it.
#pragma once

#include <cstddef>

#include "flux/base/executor.h"

namespace flux {

class WaitingExecutor : public Executor {
 public:
  // Runs what is ready without waiting; returns how many tasks ran.
  virtual size_t poll() = 0;
  // Waits for one task until `deadline_ns` (of now_ns()) and runs it; false if none came.
  virtual bool run_one_until(TimeNs deadline_ns) = 0;
};

}  // namespace flux
