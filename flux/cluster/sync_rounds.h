// SyncRounds: who takes part in each round of the sync mode (protocol/sync_step.h).
//
// Every lane of a live worker asks for a block; when all of them wait, a round is formed: each gets
// one block (those for whom none is left go on waiting). A lane that asks again has finished its
// block. A worker that is gone leaves its rounds: the caller voids its blocks at the servers.
// Pure. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "flux/cluster/block_queue.h"
#include "flux/protocol/sync_step.h"

namespace flux {

class SyncRounds {
 public:
  // Rounds are numbered above `last`: those of two coordinators never have the same number.
  explicit SyncRounds(uint64_t last = 0) : last_round_(last) {}

  void add_worker(WorkerId worker, uint32_t lanes);
  struct Voided {
    uint64_t round = 0;
    BlockId block;
  };
  // Blocks that the worker held in a round that may not be over.
  std::vector<Voided> remove_worker(WorkerId worker);
  // The lane holds a block of a round that a coordinator before this one has formed.
  void adopt(WorkerId worker, uint32_t lane, const SyncRound& round, const BlockId& block);
  // Members of adopted rounds whose lanes nobody has claimed; asked once, when the time for that is
  // over.
  std::vector<Voided> take_unclaimed();
  // The lease of this block ran out: its lane is out of the rounds until it asks again.
  std::optional<Voided> remove_block(const BlockId& block);
  // The lane asks for a block. False: there is no such lane.
  bool wait(WorkerId worker, uint32_t lane);
  // Every live lane waits, and there is one. A worker that joins while a round runs counts from the
  // next one on.
  bool ready() const;
  // Lanes that the next round waits for, for people.
  std::vector<std::pair<WorkerId, uint32_t>> missing() const;
  struct Given {
    WorkerId worker = 0;
    uint32_t lane = 0;
    BlockLease lease;
  };
  // Forms a round from blocks of `queue`; empty when it has none to lease or not ready().
  std::vector<Given> form(BlockQueue* queue, TimeNs now, SyncRound* round);

 private:
  struct Lane {
    bool waits = false;
    bool holds = false;
    bool out = false;  // its lease ran out and it has not asked since
    BlockId block;
    uint64_t round = 0;
  };
  std::map<std::pair<WorkerId, uint32_t>, Lane> lanes_;
  uint64_t last_round_ = 0;
  std::map<uint64_t, std::set<BlockId>> unclaimed_;  // by adopted round
};

}  // namespace flux
