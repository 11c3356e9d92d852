// Supervisor: `flux run --servers S --workers W`: a whole cluster as processes of this machine.
//
// Starts a coordinator, waits until it listens, then servers and workers; a worker that dies is
// started again a few times with the reason said, a lost server or coordinator ends the job with
// its name and reason (running it again goes on from the last checkpoint). The first stop signal
// is handed to the coordinator, which ends the job with a checkpoint; the second ends everything.
// No process outlives the supervisor. The coordinator's output is shown as its own; everybody's
// lines are in <output>/cluster/logs.
// Threads: one. Failure: the exit code, with the reason on standard error.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "flux/job/job.h"
#include "flux/main/commands.h"

namespace flux {

struct SupervisorOptions {
  RunArguments run;
  const std::atomic<bool>* stop = nullptr;
};

// `job` is what run.job says, checked. Returns the exit code of the command.
int supervise(const Job& job, const SupervisorOptions& options);

}  // namespace flux
