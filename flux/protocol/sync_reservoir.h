// SyncReservoir: the pushes of one shard that wait for the rest of their sync step.
//
// A step (round, step) is complete when each of its batches has arrived, is in the ledger already
// (applied before, or given another verdict), or belongs to a member that was voided for the round.
// Then it is poured: what has arrived is applied as one change, weighted by examples of the batch /
// examples of the step, in the order of identities; so the sum does not depend on who came first.
// Keyed by identity: a batch that is pushed again while it waits joins the first push; the ledger
// is asked on arrival and again at the pour. The driver holds the shard's lock and does:
//     answer = reservoir.arrive(replica, arrival);      // nullopt: it waits
//     while (reservoir.next_pour(replica, &pour)) {
//       if (!pour.shares.empty()) { apply the weighted sum; op = replica.commit(pour.claim, hash);
//       } answer pour.answers, once the lock is released
//     }
// Rounds rise in an incarnation: one far below the newest that was poured is over.
// Pure; threads: none inside. Bounded: steps that wait, pushes of one batch. Nothing from the wire
// can break it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "flux/protocol/shard_replica.h"
#include "flux/protocol/sync_step.h"

namespace flux {

// The driver's way back to a push: its memory and where its answer goes.
struct SyncTicket {
  std::shared_ptr<void> push;
  size_t place = 0;
};

struct SyncArrival {
  const PushClaim* claim = nullptr;  // of one batch
  ShardEpoch epoch;
  const SyncStep* step = nullptr;
  uint64_t examples = 0;  // in the batch
  SyncTicket ticket;
};

struct SyncPour {
  struct Share {
    SyncTicket ticket;
    uint64_t examples = 0;
    float weight = 0;
  };
  struct Reply {
    SyncTicket ticket;
    ShardAnswer answer;  // `op` of those that are applied: as commit() says
  };
  PushClaim claim;            // what is applied; no ids: nothing
  std::vector<Share> shares;  // one for each of claim.ids, in that order
  std::vector<Reply> answers;
};

class SyncReservoir {
 public:
  static constexpr size_t kStepsMax = 64;      // waiting at once
  static constexpr size_t kTicketsMax = 8;     // pushes of one batch that wait together
  static constexpr size_t kIdsMax = 1U << 16;  // batches of a step
  static constexpr uint64_t kRoundsKept = 64;  // below the newest that was poured

  // The answer, or nullopt: the push waits, and next_pour() must be asked.
  std::optional<ShardAnswer> arrive(const ShardReplica& replica, const SyncArrival& arrival);
  // This member is gone: what of it has not arrived counts as empty, and what comes later is
  // refused. Idempotent. next_pour() must be asked.
  void void_member(uint64_t round, const BlockId& block);
  // Takes one complete step out. Also to be asked after the ledger changed in another way.
  bool next_pour(const ShardReplica& replica, SyncPour* pour);
  // Takes everything out, for a shard that stops serving; answered with `answer`.
  std::vector<SyncPour::Reply> clear(const ShardReplica& replica, Answer answer);

  bool empty() const { return steps_.empty(); }
  // What the oldest step waits for, for people; empty: nothing.
  std::string waits_for(const ShardReplica& replica) const;

 private:
  using StepKey = std::pair<uint64_t, uint32_t>;  // round, step
  struct Waiting {
    PushClaim claim;
    ShardEpoch epoch;
    uint64_t examples = 0;
    std::vector<SyncTicket> tickets;  // the first one's gradient counts
  };
  struct Step {
    std::vector<BatchId> ids;
    uint64_t examples = 0;
    std::map<BatchId, Waiting> arrived;
  };
  bool is_voided(uint64_t round, const BlockId& block) const;
  bool is_over(const StepKey& key) const;
  bool is_missing(const ShardReplica& replica, const StepKey& key, const Step& step,
                  const BatchId& id) const;
  bool is_complete(const ShardReplica& replica, const StepKey& key, const Step& step) const;
  void remember_poured(const StepKey& key);

  std::map<StepKey, Step> steps_;
  std::map<uint64_t, std::set<BlockId>> voided_;  // by round
  std::map<uint64_t, uint32_t> poured_;           // by round: steps that are over
};

}  // namespace flux
