// ServerAdminPort: what a server does for a job's coordinator, and ServerRegistry: what a
// coordinator does for servers.
//
// Asked per pass, section, checkpoint and change of places, never per batch. A server process
// serves several jobs in separate namespaces: a job is opened under an incarnation, and every later
// call and every pull and push names it. Calls name the shards that they are about, each with its
// epoch, and a term: a server that has seen a later term of the job refuses (kStale), one that is
// not the primary of a named shard under that epoch refuses too (kStale; nothing is done
// then). What changes shards is answered when it is replicated. All calls are asynchronous: `done`
// runs later on the caller's executor, once. Everything may be asked twice.
// Failure: kUnavailable (try again, or after a look at the map), kStale (an older term or another
// incarnation), else what the server says.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "flux/api/job_port.h"
#include "flux/api/saved_shard.h"
#include "flux/base/status.h"
#include "flux/cluster/shard_loads.h"
#include "flux/protocol/shard_replica.h"

namespace flux {

// Which job, on whose behalf, and which shards it is about.
struct AdminCall {
  uint64_t incarnation = 0;
  uint64_t term = 0;
  std::vector<ShardId> shards;     // sorted
  std::vector<ShardEpoch> epochs;  // of each
};

constexpr uint64_t kAnyOp = ~0ULL;

// The place of one replica: what the server is to be for this shard from now on.
struct ShardAssignment {
  ShardId shard = 0;
  ShardEpoch epoch;
  ReplicaRole role = ReplicaRole::kPrimary;  // kNone: forget the replica
  ServerId backup = kNoServer;               // of a primary
  uint64_t at_op = kAnyOp;  // promotion after a seal: only if the replica's log head is this
  bool operator==(const ShardAssignment&) const = default;
};

// Replicas to be, and where the other servers are.
struct Assignments {
  std::vector<ShardAssignment> shards;  // sorted by shard
  std::vector<std::string> servers;     // addresses by ServerId; "": gone
};

// A replica as its server sees it.
struct ShardState {
  ShardId shard = 0;
  ShardEpoch epoch;
  ReplicaRole role = ReplicaRole::kNone;
  bool sealed = false;
  bool complete = false;  // has lineage
  uint64_t op = 0;
  uint64_t stream_hash = 0;
  uint64_t replicated = 0;      // of a primary: ops up to this one are at its backup
  ServerId backup = kNoServer;  // of a primary
  bool operator==(const ShardState&) const = default;
};

struct OpenJob {
  std::string name;  // of the job: opening it again under a newer term replaces the old namespace
  JobSpec job;
  uint64_t incarnation = 0;
  uint64_t term = 0;
  ServerId self = 0;  // of the server that is asked
  // Replicas that begin in the job's initial state, complete; may be none (they are copied later).
  Assignments places;
  uint64_t boot = 0;  // of the process that is asked: another one at its address refuses
};

// What a server has of a job.
struct Holdings {
  uint64_t incarnation = 0;  // 0: it does not have the job
  uint64_t term = 0;         // highest that it has obeyed
  ServerId self = kNoServer;
  std::vector<ShardState> shards;
  std::map<uint32_t, uint64_t> passes;  // open: geometry, as any of its shards says
  uint32_t closed_below = 0;            // the lowest watermark of its complete replicas
};

// A file of an older checkpoint that a shard builds on.
struct FileToLoad {
  uint64_t number = 0;  // of that checkpoint
  std::string name;
  uint64_t bytes = 0;
  uint64_t hash = 0;
  uint64_t op = 0;
  uint64_t stream_hash = 0;
  bool operator==(const FileToLoad&) const = default;
};

// A shard of a committed checkpoint, to be loaded: its newest file, after those of the chain,
// oldest first (checkpoint/manifest.h).
struct ShardToLoad {
  ShardId shard = 0;
  std::string name;  // of the file
  uint64_t bytes = 0;
  uint64_t hash = 0;
  uint64_t op = 0;
  uint64_t stream_hash = 0;
  std::vector<FileToLoad> chain = {};
  bool operator==(const ShardToLoad&) const = default;
};

struct LoadJob {
  std::string folder;   // of checkpoints
  uint64_t number = 0;  // 0: no checkpoint, the job's initial state
  std::vector<ShardToLoad> shards;
  uint32_t closed_below = 0;  // passes below this one are closed
};

// What record numbers below `records` should count, for jobs with one key per example.
struct ExpectedCount {
  uint64_t records = 0;
  uint32_t repeats = 0;
};

// The least and the most examples that any dense shard of a phase has counted; none: min > max.
struct DenseExamples {
  uint64_t min = ~0ULL, max = 0;
  bool any() const { return min <= max; }
  void add(uint64_t least, uint64_t most) {
    min = std::min(min, least);
    max = std::max(max, most);
  }
  bool operator==(const DenseExamples&) const = default;
};

struct JobTotals {
  uint64_t rows = 0;
  std::vector<uint64_t> occurrences;  // by table: sum of the integer counters of its rows
  uint64_t memory_bytes = 0;
  std::vector<DenseExamples> dense;  // by phase, over its dense shards
  // Only if asked for with ExpectedCounts: over the rows of the first table.
  uint64_t expected_seen = 0, lost = 0, doubled = 0;
  uint64_t content_hash = 0;  // order-free over shards: add them up
  double cpu_s = 0;           // of the process
  uint64_t rss_bytes = 0;
  uint64_t pulls = 0, pushes = 0, bytes_in = 0, bytes_out = 0;
  // Shards' answers to pushes: had it before; nothing applied for another reason.
  uint64_t duplicates = 0, refused = 0;
};

class ServerAdminPort {
 public:
  virtual ~ServerAdminPort() = default;
  using Done = std::function<void(Status)>;
  using States = std::function<void(Result<std::vector<ShardState>>)>;
  virtual void open_job(OpenJob job, Done done) = 0;
  // What is here of the job with this name; from now on older terms are refused for it.
  virtual void holdings(std::string name, uint64_t term,
                        std::function<void(Result<Holdings>)> done) = 0;
  // Changes roles. Per shard: taken if its epoch is newer than the replica's (or the same thing was
  // said before), the replica is complete and `at_op` fits. Answers with the state of each shard
  // after that; it was taken if epoch and role are those that were asked for. `call` names no
  // shards.
  virtual void assign(AdminCall call, Assignments places, States done) = 0;
  // Refuses pushes from now on, until a new epoch; the answer has the log heads.
  virtual void seal(AdminCall call, States done) = 0;
  // Copies the shard, one in each call, to another server; answered when the learner has caught up,
  // and goes on forwarding to it until the next assignment. Slow.
  virtual void copy(AdminCall call, ServerId target, std::string address, States done) = 0;
  // Puts replicas of these shards (that are not served here) into the state that `load` says:
  // complete learners then, under the epoch of the call. Slow.
  virtual void load(AdminCall call, LoadJob load, Done done) = 0;
  virtual void open_pass(AdminCall call, uint32_t pass, uint64_t geometry, Done done) = 0;
  virtual void close_below(AdminCall call, uint32_t pass, Done done) = 0;
  // For each of `blocks` blocks of a section: the batches that all (or any) of the shards have.
  virtual void marked(AdminCall call, BlockId section, uint32_t blocks, bool any,
                      std::function<void(Result<std::vector<uint32_t>>)> done) = 0;
  // A verdict other than applied, decided and logged by the coordinator.
  virtual void mark(AdminCall call, uint64_t geometry, std::vector<BatchId> ids, Verdict verdict,
                    Done done) = 0;
  // Sync: this member of the round is gone; what of it has not arrived counts as empty.
  virtual void void_member(AdminCall call, uint64_t round, BlockId block, Done done) = 0;
  // `committed`: number of the last checkpoint that was committed, 0: none (what was saved under
  // another number since is no base for an increment).
  virtual void save(AdminCall call, std::string folder, uint64_t number, uint64_t committed,
                    std::function<void(Result<std::vector<SavedShard>>)> done) = 0;
  // `rows`: also look at every row (counts against `expected`, content hash); not while training.
  virtual void totals(AdminCall call, bool rows, std::vector<ExpectedCount> expected,
                      std::function<void(Result<JobTotals>)> done) = 0;
  // `call` names no shards.
  virtual void close_job(AdminCall call, Done done) = 0;
};

struct ServerJoin {
  std::string name;     // for people: "server-0", unique in the job
  uint64_t boot = 0;    // random per process
  std::string address;  // where workers and the coordinator reach it
  std::string host;
  uint32_t pid = 0;
};

struct ServerJoinReply {
  ServerId server = 0;  // index in the ClusterMap
  uint32_t report_every_ms = 200;
};

struct ServerReport {
  ServerId server = 0;
  uint64_t boot = 0;
  std::vector<ServerId> suspects;  // backups that have not answered its forwards for a while
  uint64_t rss_bytes = 0;
  bool tells_work = false;  // `work` is what it did; else it is not told this time
  // Totals, so that a lost report costs nothing; sorted by shard, those of 0 left out.
  std::vector<ShardWork> work = {};
  std::vector<ServerId> silent = {};  // primaries that it follows and has not heard for a while
  uint64_t differed = 0;  // replicas here that differed from their primaries and were dropped
};

class ServerRegistry {
 public:
  virtual ~ServerRegistry() = default;
  // kStale: as report() says it.
  virtual void join(ServerJoin request, std::function<void(Result<ServerJoinReply>)> done) = 0;
  // Renews; the answer says whether the server may go (the job is over, or it is drained). kStale:
  // no member (any more): forget every replica, join anew under another boot. kNotFound: not known
  // to this coordinator, which may be a new one: join again, with what is here.
  virtual void report(ServerReport report, std::function<void(Result<bool>)> done) = 0;
};

}  // namespace flux
