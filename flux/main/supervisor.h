// Supervisor: `flux run --servers S --workers W`: a whole cluster as processes of this machine, or
// of several (--hosts).
//
// Starts a coordinator, waits until it listens, then servers and workers (main/role_keeper.h).
// Whoever dies is started again: the coordinator at once, at the same addresses and without
// touching the others, servers and workers as new members. What dies at once, again and again, is
// given up with its last line. The first stop signal is handed to the coordinator, which ends the
// job with a checkpoint; the second ends everything. No process outlives the supervisor. The
// coordinator's output is shown as its own; everybody's lines are in <output>/cluster/logs.
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
  std::string program;  // that plays the roles; empty: this one
};

// `job` is what run.job says, checked. Returns the exit code of the command.
int supervise(const Job& job, const SupervisorOptions& options);

}  // namespace flux
