// JobPort: what a job's coordinator does for workers: join, lease, report, tell the map.
//
// It is never on the data path: asked once per block and a few times a second. One call both
// acknowledges finished batches and fetches the next block. All calls are asynchronous: `done` runs
// later on the caller's executor, exactly once. Implementations: JobMaster in the same process,
// a stub over a Channel (client/remote_job.h).
// Failure: kUnavailable (try again), kStale (this worker was taken for dead: stop, or join anew),
// kInvalid (refused for good; the message is for people).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "flux/api/push_age.h"
#include "flux/base/latency.h"
#include "flux/base/status.h"
#include "flux/cluster/block_queue.h"
#include "flux/cluster/training_health.h"
#include "flux/protocol/push_session.h"
#include "flux/protocol/sync_step.h"

namespace flux {

// A job as it travels: the file's text and what was put over it. Every role builds the same model
// from it; nothing else describes the job.
struct JobSpec {
  std::string path;                                       // of the file, for messages
  std::string text;                                       // YAML
  std::vector<std::pair<std::string, std::string>> sets;  // field path, value
  bool operator==(const JobSpec&) const = default;
};

// A block that a worker has a lease of.
struct HeldBlock {
  BlockId id;
  uint32_t lane = 0;      // in sync mode
  uint32_t applied = 0;   // batches that are replicated on every shard, as far as it knows
  bool evaluate = false;  // a lease of test data
  SyncRound round;        // sync mode
};

struct JoinRequest {
  std::string name;      // for people: "worker-0", unique in the job
  uint64_t boot = 0;     // random per process: a restarted worker is another one
  uint32_t threads = 1;  // of its trainer
  std::string host;      // for people
  uint32_t pid = 0;
  // What the worker was told about the model, by dotted name; empty: it takes the job's. A
  // difference is refused with the list of them.
  std::map<std::string, std::string> model;
  // A worker whom the coordinator does not know (any more, or because it was started anew) and who
  // is at work: the incarnation that it trains, 0: a new worker. kStale: that life of the job is
  // over, forget everything and join as a new worker.
  uint64_t incarnation = 0;
  std::vector<HeldBlock> held;  // its leases; they stay its own unless others have them by now
};

struct ClusterMap {
  ShardRoute route;                  // server of each shard: an index into `servers`
  std::vector<std::string> servers;  // addresses by ServerId; "": gone
  uint64_t version = 0;  // rises with every change, also from coordinator to coordinator
};

struct JoinReply {
  WorkerId worker = 0;
  JobSpec job;
  uint64_t incarnation = 0;
  ClusterMap map;
  uint32_t report_every_ms = 500;
  // Not empty: not a member yet, the job waits for this ("for 1 more server to join"); ask again.
  std::string waits;
};

// One evaluated batch: its predictions as bytes (metrics/metric_set.h), which the port only
// carries.
struct EvalReport {
  BatchId id;
  std::string scored;
};

// A batch that the worker read and computed but did not push: its loss or gradient is not a number.
// Nothing of it is applied anywhere. The coordinator decides (skipped, or the end of the job).
struct RefusedBatch {
  BatchId id;
  std::string reason;  // for people: what is not finite, where the batch lies; bounded
};

constexpr size_t kSuspectsMax = 64;  // in one report

constexpr size_t kReportPhasesMax = 1024;  // in one report

// The network of one phase.
struct PhaseReport {
  uint64_t examples = 0;
  double loss_sum = 0;
  std::optional<double> auc;  // progressive, of its first head; nothing: it has none
};

// What a worker has done since it joined; totals, so that a lost report costs nothing.
struct WorkerReport {
  uint64_t examples = 0;
  uint64_t batches = 0;
  double loss_sum = 0;
  std::optional<double> train_auc;  // of the phase that it trained last
  uint64_t duplicates = 0;          // shard answers "had it before"
  uint64_t resends = 0;
  uint64_t bytes_sent = 0, bytes_received = 0;  // on the wire, to and from servers
  double cpu_s = 0;
  uint64_t rss_bytes = 0;
  std::vector<int64_t> stage_ns;  // by worker/progress.h Stage
  std::string waits;              // "pull from server 1 for 0.3 s"; empty: nothing
  // Leased blocks that it does not begin before it has sent another report without them. If it
  // dies, they are innocent; whatever it does not name here may have been begun.
  std::vector<BlockId> ahead;
  // What it saw while training (metrics/progressive_set.h), as bytes that the port only carries;
  // empty: not told this time.
  std::string metrics;
  LatencyHistogram push_times = {};  // from each push request to its answer
  // Servers that do not answer it; at most kSuspectsMax. A guess: a wrong one does no harm.
  std::vector<ServerId> suspects = {};
  std::vector<PhaseReport> phases = {};  // by the number of the network
  AgeHistogram push_ages = {};           // as servers told, each of each push that it applied
  // The latest; those that were told before have the numbers of then.
  std::vector<HealthPiece> health = {};
};

struct LeaseRequest {
  WorkerId worker = 0;
  uint32_t lane = 0;  // of a lane in sync mode; else 0
  // Rises with every new request of this (worker, lane); a repeat of one whose answer may be lost
  // has the same number and gets the same answer, so that a lost reply loses no block.
  uint64_t seq = 0;
  std::vector<BatchId> applied;  // every shard acknowledged these
  std::vector<EvalReport> evaluated;
  // Told until an answer makes it certain that the coordinator knows, as `applied` is. In sync mode
  // the other members of the step wait for the verdict, so it is told at once.
  std::vector<RefusedBatch> refused;
};

struct LeaseAnswer {
  enum class Kind : uint8_t {
    kBlock,     // train `lease`
    kEvaluate,  // predict `lease` with the current rows, change nothing, report each batch
    kWait,      // nothing now; ask again after `wait_ms` (the coordinator holds requests back, so
                // this is rare); `reason` says what everybody waits for
    kEnd,       // the job is over or stopping: finish what is in flight, leave
  };
  Kind kind = Kind::kWait;
  BlockLease lease;
  uint64_t geometry = 0;  // hash of the cut that `lease` belongs to; see geometry()
  SyncRound round;        // sync mode only
  uint32_t wait_ms = 0;
  std::string reason;
  float lr_scale = 1;  // of every push of this block's batches; see cluster/lr_policy.h
  // In the run, whether trained yet or not: where this block stands in cluster/lr_schedule.h.
  uint64_t examples_before = 0;
};

struct ReportAnswer {
  bool stop = false;  // end training now: drop what is not begun, finish what is in flight
  uint64_t map_version = 0;
};

class JobPort {
 public:
  virtual ~JobPort() = default;
  virtual void join(JoinRequest request, std::function<void(Result<JoinReply>)> done) = 0;
  virtual void lease(LeaseRequest request, std::function<void(Result<LeaseAnswer>)> done) = 0;
  // Renews the worker's membership.
  virtual void report(WorkerId worker, WorkerReport report,
                      std::function<void(Result<ReportAnswer>)> done) = 0;
  virtual void map(std::function<void(Result<ClusterMap>)> done) = 0;
  // A Geometry as JSON, by its hash.
  virtual void geometry(uint64_t hash, std::function<void(Result<std::string>)> done) = 0;
  // The worker is done or gives up (`why` is not ok: it failed); acknowledges as lease() does.
  virtual void leave(LeaseRequest last, WorkerReport report, Status why,
                     std::function<void(Status)> done) = 0;
};

}  // namespace flux
