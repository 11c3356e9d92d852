// What each role makes of a job: the coordinator a plan, a server its shards, a worker its model.
//
// A job travels as its own file (JobSpec); every role opens it here and so builds the same graph
// and tables in the same order. Relative paths in a job start at the coordinator's current folder:
// absolute_paths() fixes them there, and what travels afterwards (the cut of the data, folders of
// checkpoints) names absolute paths only. Workers and servers never look at the job's own paths.
// Pure but for reading the job file, and for the functions inside a JobPlan, which read data.
// Failure: kInvalid with file, line and what is allowed, as the job file's own checks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "flux/api/job_port.h"
#include "flux/api/server_admin.h"
#include "flux/base/status.h"
#include "flux/coordinator/job_plan.h"
#include "flux/job/job.h"
#include "flux/metrics/slices.h"
#include "flux/nn/net.h"
#include "flux/server/server.h"
#include "flux/worker/model_layout.h"

namespace flux {

// A job and what follows from it alone, the same on every machine.
struct RoleJob {
  Job job;             // tables in the order of the layout, and so of every request
  Graphs graphs;       // by phase
  ModelLayout layout;  // of all of them in one model
  uint32_t sparse_shards = 0;
  uint32_t all_shards = 0;  // dense ones included

  std::vector<float> initial_parameters() const;  // of the flat dense vector
  bool minimises_log_loss() const;                // in every phase, and nothing else
};

// The file as it travels; `sets` are "field=value" of the command line.
Result<JobSpec> read_spec(const std::string& path, std::span<const std::string> sets);
Result<Job> parse_spec(const JobSpec& spec);
// Builds and checks the whole model.
Result<RoleJob> open_role_job(Job job);
Result<RoleJob> open_role_job(const JobSpec& spec);
// Output folder, passes and test data as seen from the current folder.
Status absolute_paths(Job* job);

// What must agree before rows mean the same (Manifest::model). Learning rates may change.
std::map<std::string, std::string> describe_model(const RoleJob& role);
// Slots by which its metrics are told apart.
std::vector<SliceSlot> slice_slots(const Job& job);
// Trainer threads of a worker on this machine: 1 if deterministic, else `wish`, else the job's,
// else one per core. -1 is no wish.
uint32_t worker_threads(const Job& job, int wish);
// Not 0; differs for every process and start.
uint64_t random_id();

// Seconds between checkpoints: the job's, else 60, in a cluster 8. There a shard whose replicas are
// all lost comes from the last one, which is to be at most 10 s old; making it takes time, too.
double checkpoint_every_s(const Job& job, bool cluster);
// `threads` read the data when it is cut. For a run in one process; a coordinator of others sets
// what differs there.
Result<JobPlan> make_plan(const RoleJob& role, JobSpec spec, uint32_t threads);

// The namespace of a job in a server: shards with their initial rows and dense values. `epoch` is
// that of all shards as primaries, unless places are said.
Result<ServerOptions> server_options(const RoleJob& role, uint64_t incarnation, ShardEpoch epoch);
// How a server process reaches others and gets its turns (ServerOptions).
struct ServerLinks {
  Executor* executor = nullptr;
  ReachReplica reach;
  std::function<void(const std::string&)> log;
};
Result<std::shared_ptr<Server>> make_server(const OpenJob& open, const ServerLinks& links = {});

}  // namespace flux
