// JobMaster: the life of one job: servers and workers that join and go, passes, sections, leases,
// checkpoints, evaluation, the end. The one owner of the decisions of cluster/.
//
// Servers come and go: a lost primary is replaced by its backup, lost shards are restored from the
// newest checkpoint and lack nothing in the end, since the queue is recomputed from the ledgers. A
// coordinator that starts while servers hold the job adopts what they have.
//
// Everything is an event on one executor: nothing here blocks, starts a thread, opens a socket or
// reads a clock, so the same code runs embedded, as a process, and in the simulator. Slow work goes
// through an Offload; servers are reached through ServerAdminPorts; files through Files.
// Threads: every method on the executor's thread. Failure: finished() with a Status; whatever was
// committed stays good.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "flux/api/job_port.h"
#include "flux/api/server_admin.h"
#include "flux/base/executor.h"
#include "flux/base/offload.h"
#include "flux/checkpoint/manifest.h"
#include "flux/cluster/rebalance.h"
#include "flux/cluster/suspicions.h"
#include "flux/cluster/training_guard.h"
#include "flux/coordinator/job_plan.h"
#include "flux/coordinator/job_status.h"
#include "flux/election/election.h"
#include "flux/metrics/metric_values.h"
#include "flux/storage/files.h"

namespace flux {

struct JobMasterOptions {
  uint32_t servers = 1;         // wait for so many at a fresh start
  uint32_t workers_wanted = 1;  // for messages only: workers come and go
  bool fresh = false;
  uint64_t incarnation = 0;      // random, not 0; of the job if nobody holds it yet
  Election* election = nullptr;  // null: terms are files in the job's own folder
  // Servers that run on their own and serve several jobs: addresses, instead of waiting for joins.
  std::vector<std::string> standing_servers;
  TimeNs servers_deadline_ns = 30 * kSecond;    // to join, or any to come back
  TimeNs workers_deadline_ns = 30 * kSecond;    // the first worker to join, or any to come back
  TimeNs member_lease_ns = 2 * kSecond;         // without a report: taken for dead
  TimeNs report_every_ns = 200 * kMillisecond;  // what workers and servers are asked for
  // A server that somebody cannot reach gives a sign of life within this: four reports.
  TimeNs suspect_grace_ns = 800 * kMillisecond;
  SuspicionOptions suspicion;
  TimeNs takeover_ns = 2 * kSecond;  // for servers of the log to come
  // For any to come when the log is lost; if others may have something newer, last_replica_ns.
  TimeNs takeover_lost_ns = kSecond;
  TimeNs last_replica_ns = 10 * kSecond;       // silence of a server that alone has a shard
  TimeNs restore_deadline_ns = 600 * kSecond;  // shards that nobody serves
  TimeNs leave_deadline_ns = 5 * kSecond;      // workers to leave after the end
  TimeNs disk_patience_ns = 300 * kSecond;     // the end of a pass that cannot be written
  TimeNs call_timeout_ns = 60 * kSecond;       // an admin call that nobody answers
  TimeNs block_timeout_floor_ns = 30 * kSecond;
  TimeNs lease_hold_ns = 2 * kSecond;        // a request with nothing to lease is held so long
  TimeNs join_hold_ns = 500 * kMillisecond;  // and a join that comes too early
  TimeNs drain_deadline_ns = 30 * kSecond;   // workers to leave after a stop
  bool announce_members = true;              // say who joins
  RebalanceOptions rebalance = {};
  // As a supervisor keeps them, or as operators said to a coordinator before this one
  // (JobEvents::wanted); -1: whoever comes.
  int64_t wanted_workers = -1, wanted_servers = -1;
  uint64_t wanted_orders = 0;
  TimeNs tick_ns = 50 * kMillisecond;
};

// Examples of the open pass in the epochs of one phase: that every shard has, that any has.
struct OpenPhase {
  uint64_t all = 0, any = 0;
};

// How it ended.
struct JobOutcome {
  Status status;                      // ok: complete or stopped
  bool complete = false;              // every pass closed (and tested)
  std::vector<ClosedPass> passes;     // closed, and the open one as "open"
  uint64_t partly = 0;                // examples of the open pass that only some shards have
  std::vector<OpenPhase> open;        // the open pass by phase; empty: none is open
  JobTotals totals;                   // over all servers
  std::vector<JobTotals> servers;     // each
  WorkerReport sum;                   // over all workers
  std::vector<WorkerStatus> workers;  // each that ever took part, with its last report
  JobStatus last;
  std::optional<MetricReport> test;  // the last one, if any
  MetricReport progressive;          // of this run
  std::string resumed_from, model;   // checkpoint paths
  std::string best;                  // the one that a stop condition found best; may be empty
  std::string stopped_by;            // the condition of the job file that ended it; may be empty
  uint64_t untrained = 0;            // examples of the open pass that were left, repeats counted
  Status evaluation;                 // of the test, if it failed: the training is saved and counted
  uint64_t rows = 0;
  double train_s = 0;
};

// What a supervisor has to know.
struct RolesWanted {
  int64_t workers = -1, servers = -1;       // how many there are to be; -1: nobody said
  uint64_t orders = 0;                      // rises with everything that changed these numbers
  bool ending = false;                      // roles leave because the job comes to its end
  std::map<std::string, uint32_t> lost;     // taken for dead and not back: process by name
  std::map<std::string, uint32_t> leaving;  // workers that are not counted any more
};

// What people see. Called on the executor's thread.
class JobEvents {
 public:
  virtual ~JobEvents() = default;
  virtual void say(const std::string& line) = 0;
  virtual void finished(const JobOutcome& outcome) = 0;
  // A pass begins to be trained (`before` examples of the job are applied, `total` will be when it
  // is closed), or no longer is: for the progress line.
  virtual void training(bool on, uint64_t before, uint64_t total) {
    (void)on, (void)before, (void)total;
  }
  // The test after this pass has been evaluated.
  virtual void tested(const std::string& pass, const MetricReport& report) {
    (void)pass, (void)report;
  }
  // The training looks sick.
  virtual void warned(const TrainingWarning& warning) { say("warning: " + to_string(warning)); }
  // A checkpoint was committed, here; and by it perhaps this pass closed.
  virtual void saved(const std::string& path) { (void)path; }
  virtual void pass_closed(const ClosedPass& pass) { (void)pass; }
  // Something of this has changed: the supervisor starts and ends processes.
  virtual void wanted(const RolesWanted& roles) { (void)roles; }
};

class JobMaster final : public JobPort, public ServerRegistry {
 public:
  using Reach = std::function<std::shared_ptr<ServerAdminPort>(const std::string& address)>;

  JobMaster(JobPlan plan, JobMasterOptions options, Executor* executor, Offload* offload,
            Files* files, Reach reach, JobEvents* events);
  ~JobMaster() override;

  void start();
  // Ends soon: no more leases, what is in flight finishes, a checkpoint, the end.
  void stop(const std::string& why);
  // A connection or process is known to be gone: do not wait for its lease to run out.
  void worker_gone(const std::string& name, uint64_t boot, const std::string& why);
  void server_gone(const std::string& name, uint64_t boot, const std::string& why);
  JobStatus status() const;
  // What workers saw while training, by phase, head and slice; about a second old.
  MetricReport progressive() const;
  // Operators' requests; kInvalid or kNotFound say what is wrong with them. Things happen later,
  // status() shows how far they are. A node is a server or a worker, by name.
  Status drain(const std::string& node);
  // How many there are to be; -1: no change. Those too many are drained, highest names first.
  Status scale(int64_t workers, int64_t servers);
  Status move(ShardId shard, const std::string& server);
  // Moves one shard away from the server with the most load, if that betters anything, now; says
  // what moves, or why nothing does. `dry_run`: only says it. kUnavailable: ask again later.
  Result<std::string> rebalance(bool dry_run);

  // JobPort
  void join(JoinRequest request, std::function<void(Result<JoinReply>)> done) override;
  void lease(LeaseRequest request, std::function<void(Result<LeaseAnswer>)> done) override;
  void report(WorkerId worker, WorkerReport report,
              std::function<void(Result<ReportAnswer>)> done) override;
  void map(std::function<void(Result<ClusterMap>)> done) override;
  void geometry(uint64_t hash, std::function<void(Result<std::string>)> done) override;
  void leave(LeaseRequest last, WorkerReport report, Status why,
             std::function<void(Status)> done) override;
  // ServerRegistry
  void join(ServerJoin request, std::function<void(Result<ServerJoinReply>)> done) override;
  void report(ServerReport report, std::function<void(Result<bool>)> done) override;

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace flux
