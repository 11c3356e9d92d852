// JobTarget: finding a running job from what a person names: its file, its output folder, or the
// HTTP address of its coordinator.
//
// Threads: any; values. Failure: kInvalid says that the job does not run, and how to start it.
#pragma once

#include <optional>
#include <string>

#include "flux/base/status.h"
#include "flux/coordinator/http_client.h"
#include "flux/coordinator/job_status.h"
#include "flux/main/cluster_folder.h"
#include "flux/main/commands.h"
#include "flux/main/job_end.h"

namespace flux {

struct JobTarget {
  std::string named;                    // as the person wrote it
  std::optional<ClusterFolder> folder;  // unless an address was given
  std::optional<CoordinatorRecord> record;
  HttpTarget http;
};

// `must_run`: refuse a job without a coordinator's record.
Result<JobTarget> find_target(const TargetArguments& arguments, bool must_run);
// Asks the coordinator. kInvalid if it is gone, kUnavailable if it does not answer.
Result<JobStatus> ask_status(const JobTarget& target);
// Where the job writes; empty: only its address is known.
std::string output_of(const JobTarget& target);
// The process of a job that runs without a cluster, as text; empty: none is seen from here.
std::string embedded_process(const JobTarget& target);
// How its last run ended; nothing: it runs, was killed, or has never run.
std::optional<JobEnd> last_end(const JobTarget& target);
// Its process (and its supervisor's) runs on this host, as far as can be seen from here.
bool seems_to_run(const JobTarget& target);

}  // namespace flux
