// RunJob: the life of one embedded job: passes, sections, checkpoints, evaluation, the end.
//
// The calling thread trains (through the worker's threads) while a reporting thread prints and, in
// the usual mode, takes checkpoints without stopping anyone; the deterministic mode takes them
// between batches instead. Failure: Status; whatever was committed stays good.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "flux/base/status.h"
#include "flux/job/job.h"
#include "flux/main/summary.h"

namespace flux {

struct RunOptions {
  bool fresh = false;  // forget what an earlier run left in the output folder
  bool terminal = false;
  const std::atomic<bool>* stop = nullptr;
  std::string resume_command;  // printed when stopped
  bool json = false;           // events for programs (main/event_lines.h)
  bool quiet = false;          // neither lines for people nor, as events, messages and the end
};

Result<Summary> run_job(const Job& job, const RunOptions& options);

}  // namespace flux
