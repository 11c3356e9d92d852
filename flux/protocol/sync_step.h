// SyncStep and SyncRound: who takes part in a merged step of the sync mode.
//
// A round gives one block to each member (a lane of a live worker); step j of the round merges
// batch j of every member's block. The coordinator fixes the round before its first step, so every
// shard of every server merges the same set. A member that dies is voided: its batches that have
// not arrived count as empty and are trained in a later round. Values; pure.
#pragma once

#include <cstdint>
#include <vector>

#include "flux/protocol/batch_id.h"

namespace flux {

struct RoundMember {
  BlockId block;
  uint32_t batches = 0;
  uint32_t skip_mask = 0;  // batches that are not part of any step
  bool operator==(const RoundMember&) const = default;
};

struct SyncRound {
  uint64_t id = 0;                   // never used twice in an incarnation; 0: no round (not sync)
  std::vector<RoundMember> members;  // sorted by block
  // Live lanes when it was formed. At the end of a section there are fewer members than lanes, and
  // blocks differ in size: who takes no part in a step counts as a whole batch of zeros, so that
  // a few batches alone are not taken for as much as a full step.
  uint32_t lanes = 0;
  bool operator==(const SyncRound&) const = default;
};

// Named by every push of the step. The merged gradient is the mean over all examples of the step:
// sum of (examples of a batch / examples of the step) x its gradient, in the order of `ids`.
// `examples` is the same for every step of full size (see SyncRound::lanes).
struct SyncStep {
  uint64_t round = 0;
  uint32_t step = 0;
  std::vector<BatchId> ids;  // sorted; every batch of the step
  uint64_t examples = 0;     // in all of them
  bool operator==(const SyncStep&) const = default;
};

// The batches of step `step`, sorted; empty when the round is over, or when every member skips that
// step: then nobody pushes, and the round goes on with the next one. (`examples` is left 0: the
// geometry knows.)
SyncStep sync_step(const SyncRound& round, uint32_t step);
// Number of steps in the round: no later step has a batch.
uint32_t sync_steps(const SyncRound& round);

}  // namespace flux
