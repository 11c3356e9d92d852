// SyncRounds: who takes part in each round of the sync mode (protocol/sync_step.h).
//
// Every lane of a live worker asks for a block; when all of them wait, a round is formed: each gets
// one block (those for whom none is left go on waiting). A lane that asks again has finished its
// block. A worker that is gone leaves its rounds: the caller voids its blocks at the servers.
// Pure. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "flux/cluster/block_queue.h"
#include "flux/protocol/sync_step.h"

namespace flux {

class SyncRounds {
 public:
  void add_worker(WorkerId worker, uint32_t lanes);
  struct Voided {
    uint64_t round = 0;
    BlockId block;
  };
  // Blocks that the worker held in a round that may not be over.
  std::vector<Voided> remove_worker(WorkerId worker);
  void wait(WorkerId worker, uint32_t lane);
  // Every live lane waits, and there is one.
  bool ready() const;
  struct Given {
    WorkerId worker = 0;
    uint32_t lane = 0;
    BlockLease lease;
  };
  // Forms a round from blocks of `queue`; empty when it has none to lease.
  std::vector<Given> form(BlockQueue* queue, TimeNs now, SyncRound* round);

 private:
  struct Lane {
    bool waits = false;
    bool holds = false;
    BlockId block;
    uint64_t round = 0;
  };
  std::map<std::pair<WorkerId, uint32_t>, Lane> lanes_;
  uint64_t last_round_ = 0;
};

}  // namespace flux
