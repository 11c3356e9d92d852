// ClusterSim: a whole cluster in one process from one seed: coordinator, servers, workers
// and push sessions of production, over a simulated network, clock and disk.
//
// The seed draws the cluster, the job and the faults: messages lost, doubled, delayed; connections
// that break; processes that die (also inside a write), pause, are cut off, come back; workers that
// leave; a disk that fails, in reading too; false hints; clocks that jump forward and drift;
// records that are no numbers or kill whoever reads them. A job that ends with a reason is started
// again, as a person would, and goes on from the newest checkpoint. Audited: every answer against
// the shard's ledger when it is given, every committed checkpoint when it appears, and at the end
// that every example counts exactly once per epoch on every shard, that the job ended within a
// bound once the faults stopped, and that no process stayed behind. The same seed gives the same
// run, bit by bit. Threads: runs of different seeds may go at the same time. Failure: in the
// result.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "flux/base/executor.h"
#include "flux/testing/cluster_bug.h"

namespace flux {

struct ClusterSimResult {
  bool ok = true;
  std::string failure;  // what broke, at which simulated time
  std::string plan;     // what the seed drew
  std::string mode;
  uint64_t steps = 0;
  uint64_t messages = 0;
  uint64_t crashes = 0;  // of any process
  uint64_t lives = 0;    // starts of the coordinator
  uint64_t power_cuts = 0;
  uint64_t rebalanced = 0;    // shards moved for their load
  uint64_t jumps = 0;         // of clocks
  uint64_t poisoned = 0;      // deaths of workers by a deadly record
  uint64_t skipped = 0;       // batches set aside
  uint64_t unread = 0;        // files that could not be read
  uint64_t misread = 0;       // ... that were read wrongly
  uint64_t rumours = 0;       // false words of workers about servers
  uint64_t condemned = 0;     // servers taken for dead by what others say of them, true or false
  uint64_t acknowledged = 0;  // told to be replicated
  uint64_t backups = 0;       // replicas compared with their primary
  uint64_t checkpoints = 0;   // manifests committed and audited
  uint64_t pushes = 0;        // answers of shards
  uint64_t duplicates = 0, refused = 0;  // among them
  uint64_t trace_hash = 0;               // equal for equal runs
  double simulated_s = 0;
};

// `tell` gets the story, line by line.
ClusterSimResult run_cluster_sim(
    uint64_t seed, ClusterBug bug = ClusterBug::kNone,
    const std::function<void(TimeNs now, const std::string& line)>& tell = nullptr);

}  // namespace flux
