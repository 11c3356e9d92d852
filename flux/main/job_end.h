// JobEnd: how the last run of a job ended. Whoever holds the output folder leaves it there
// (<output>/end.json) as the last thing it does, and takes away that of the run before as the
// first: a folder without one belongs to a job that runs, or that was killed. Figures are in
// summary.json, which a run that failed does not write. Threads: any; values. Failure: Status that
// names the file.
#pragma once

#include <string>

#include "flux/base/status.h"
#include "flux/main/summary.h"

namespace flux {

struct JobEnd {
  std::string state;       // "complete", "stopped" or "failed"
  std::string error;       // of one that failed
  std::string stopped_by;  // the condition of the job file that ended it; may be empty
  std::string command;     // that runs the job again
};

Status forget_end(const std::string& output);
Status leave_end(const std::string& output, const JobEnd& end);
JobEnd end_of(const Result<Summary>& result, const std::string& command);
// kNotFound if there is none.
Result<JobEnd> read_end(const std::string& output);

// "is complete", "was stopped", "failed: no space left".
std::string end_phrase(const JobEnd& end);
// For people, with the figures of summary.json; `named`: the job, as the person did.
std::string end_text(const std::string& named, const std::string& output, const JobEnd& end);
// Ok after a job that is complete or was stopped, and whose examples are all counted once.
Status end_status(const std::string& output, const JobEnd& end);

}  // namespace flux
