// JobStatus: what runs now, for people and programs (`flux status`, HTTP, metrics): a snapshot.
// Every wait has a name and an end. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flux/api/job_port.h"
#include "flux/api/server_admin.h"
#include "flux/cluster/training_guard.h"

namespace flux {

struct WaitStatus {
  std::string who;   // "coordinator", "worker-1"
  std::string what;  // "for 1 more server to join", "for save of checkpoint 12 by server-0"
  double since_s = 0;
  double until_s = -1;  // seconds from now until it is given up; -1: repeated without end
};

struct WorkerStatus {
  WorkerId id = 0;
  std::string name, host;
  uint32_t pid = 0, threads = 0;
  double seen_s_ago = 0;
  double examples_per_s = 0;  // lately
  uint32_t blocks = 0;        // leased now
  WorkerReport report;
};

struct ServerStatus {
  uint32_t id = 0;
  std::string name, host, address;
  uint32_t pid = 0;
  double seen_s_ago = 0;
  uint32_t shards = 0;   // it is the primary of
  uint32_t backups = 0;  // it is the backup of
  bool draining = false;
  uint64_t rss_bytes = 0;
  uint64_t keys_per_s = 0;  // pulled and pushed by workers, lately
};

struct HotShard {
  uint32_t shard = 0;
  std::string server;  // that serves it
  uint64_t keys_per_s = 0;
};

// Examples that were applied between the pull of a gradient's values and its push.
struct PushAgeStatus {
  uint64_t count = 0;  // of pushes whose age is known, at each server once
  uint64_t p50 = 0, p99 = 0, max = 0;
};

// Shards that nobody served for a while.
struct FailoverStatus {
  std::string what;  // "lost server-1: its connection is closed"
  uint32_t shards = 0;
  double seconds = 0;
};

struct JobStatus {
  std::string job;
  // starting loading reading training saving evaluating stopping complete stopped failed
  std::string state;
  std::string mode;
  double up_s = 0;
  uint64_t incarnation = 0;
  ShardEpoch epoch;
  uint32_t pass = 0, passes = 0;
  std::string pass_name;
  uint32_t section = 0, sections = 0;                   // of this pass
  size_t todo = 0, pending = 0, applied = 0, done = 0;  // blocks of this section
  uint64_t examples = 0;          // applied over the life of the model, as far as known
  uint64_t examples_run = 0;      // trained by the workers of this run, repeats counted
  uint64_t examples_applied = 0;  // by the hints, each once for each repeat
  uint64_t examples_total = 0;    // when the passes known so far are closed
  double examples_per_s = 0;
  // While training, of the network of the phase at hand: AUC of its first head (nothing: it has
  // none), and the mean of what it minimises.
  std::optional<double> train_auc;
  double train_logloss = 0;
  std::string phase_name;                 // of a job with several: whose figures these are
  uint64_t phase_examples = 0;            // trained by the workers of this run
  double phase_loss_sum = 0;              // over those
  std::optional<double> auc, logloss;     // of the last test
  std::string quality = "ok";             // or "suspect": a warning is not over
  std::vector<TrainingWarning> warnings;  // all there were under this coordinator
  std::string last_checkpoint;
  double checkpoint_s_ago = -1;
  uint64_t workers_lost = 0, blocks_reissued = 0, batches_skipped = 0, duplicates = 0;
  PushAgeStatus push_age;  // of all workers, in this run
  std::vector<WorkerStatus> workers;
  std::vector<ServerStatus> servers;
  uint32_t shards = 0, replicas = 1;
  uint32_t shards_without_backup = 0, shards_unserved = 0, moves = 0;
  uint64_t epoch_changes = 0, failovers = 0, servers_lost = 0;
  uint64_t replicas_differed = 0;  // from their primaries: dropped, and copied anew
  double failover_max_s = 0;
  std::vector<FailoverStatus> latest_failovers;
  std::vector<HotShard> hottest_shards;              // few, hottest first
  uint64_t rebalanced = 0;                           // shards moved for their load
  bool taken_over = false;                           // from a coordinator before this one
  int64_t wanted_workers = -1, wanted_servers = -1;  // -1: nobody said
  std::vector<WaitStatus> waits;
  std::string error;  // why it failed
};

}  // namespace flux
