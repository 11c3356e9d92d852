// ServerAdminPort: what a server does for a job's coordinator, and ServerRegistry: what a
// coordinator does for servers.
//
// Asked per pass, section and checkpoint, never per batch. A server process serves several jobs in
// separate namespaces: a job is opened under an incarnation, and every later call and every pull
// and push names it. All calls are asynchronous: `done` runs later on the caller's executor, once.
// Failure: kUnavailable (does not answer: try again or give up), kStale (an older term or another
// incarnation), else what the server says.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "flux/api/job_port.h"
#include "flux/api/saved_shard.h"
#include "flux/base/status.h"
#include "flux/protocol/shard_replica.h"

namespace flux {

struct OpenJob {
  std::string name;  // of the job: opening it again under a newer term replaces the old namespace
  JobSpec job;
  uint64_t incarnation = 0;
  ShardEpoch epoch;
  std::vector<ShardId> shards;  // that this server owns; sorted
};

// A shard of a committed checkpoint, to be loaded.
struct ShardToLoad {
  ShardId shard = 0;
  std::string name;  // of the file
  uint64_t bytes = 0;
  uint64_t hash = 0;
};

struct LoadJob {
  std::string folder;  // of checkpoints
  uint64_t number = 0;
  std::vector<ShardToLoad> shards;
  uint32_t closed_below = 0;  // passes below this one are closed
};

// What record numbers below `records` should count, for jobs with one key per example.
struct ExpectedCount {
  uint64_t records = 0;
  uint32_t repeats = 0;
};

struct JobTotals {
  uint64_t rows = 0;
  std::vector<uint64_t> occurrences;  // by table: sum of the integer counters of its rows
  uint64_t memory_bytes = 0;
  uint64_t dense_examples_min = 0, dense_examples_max = 0;  // over dense shards; 0 without
  bool has_dense = false;
  // Only if asked for with ExpectedCounts: over the rows of the first table.
  uint64_t expected_seen = 0, lost = 0, doubled = 0;
  uint64_t content_hash = 0;  // order-free over shards: add them up
  double cpu_s = 0;           // of the process
  uint64_t rss_bytes = 0;
  uint64_t pulls = 0, pushes = 0, bytes_in = 0, bytes_out = 0;
};

class ServerAdminPort {
 public:
  virtual ~ServerAdminPort() = default;
  using Done = std::function<void(Status)>;
  virtual void open_job(OpenJob job, Done done) = 0;
  virtual void load(uint64_t incarnation, LoadJob load, Done done) = 0;
  virtual void open_pass(uint64_t incarnation, uint32_t pass, uint64_t geometry, Done done) = 0;
  virtual void close_below(uint64_t incarnation, uint32_t pass, Done done) = 0;
  // For each of `blocks` blocks of a section: the batches that all (or any) of its shards have.
  virtual void marked(uint64_t incarnation, BlockId section, uint32_t blocks, bool any,
                      std::function<void(Result<std::vector<uint32_t>>)> done) = 0;
  // A verdict other than applied, decided and logged by the coordinator: marks every shard.
  virtual void mark(uint64_t incarnation, uint64_t geometry, std::vector<BatchId> ids,
                    Verdict verdict, Done done) = 0;
  // Sync: this member of the round is gone; what of it has not arrived counts as empty.
  virtual void void_member(uint64_t incarnation, uint64_t round, BlockId block, Done done) = 0;
  virtual void save(uint64_t incarnation, std::string folder, uint64_t number,
                    std::function<void(Result<std::vector<SavedShard>>)> done) = 0;
  // `rows`: also look at every row (counts against `expected`, content hash); not while training.
  virtual void totals(uint64_t incarnation, bool rows, std::vector<ExpectedCount> expected,
                      std::function<void(Result<JobTotals>)> done) = 0;
  virtual void close_job(uint64_t incarnation, Done done) = 0;
};

struct ServerJoin {
  std::string name;     // for people: "server-0", unique in the job
  uint64_t boot = 0;    // random per process
  std::string address;  // where workers and the coordinator reach it
  std::string host;
  uint32_t pid = 0;
};

struct ServerJoinReply {
  uint32_t server = 0;  // index in the ClusterMap
  uint32_t report_every_ms = 500;
};

class ServerRegistry {
 public:
  virtual ~ServerRegistry() = default;
  virtual void join(ServerJoin request, std::function<void(Result<ServerJoinReply>)> done) = 0;
  // Renews; the answer says whether the job is over (the server may go).
  virtual void report(uint32_t server, uint64_t boot, std::function<void(Result<bool>)> done) = 0;
};

}  // namespace flux
