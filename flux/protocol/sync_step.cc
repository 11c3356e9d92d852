#include "flux/protocol/sync_step.h"

#include <algorithm>

namespace flux {
namespace {

// Whatever a message says, a block has no more batches than a mask has bits.
uint32_t batches_of(const RoundMember& member) {
  return std::min(member.batches, kBatchesPerBlockMax);
}

bool takes_part(const RoundMember& member, uint32_t step) {
  return step < batches_of(member) && ((member.skip_mask >> step) & 1) == 0;
}

}  // namespace

SyncStep sync_step(const SyncRound& round, uint32_t step) {
  SyncStep result{round.id, step, {}, 0};
  for (const RoundMember& member : round.members)
    if (takes_part(member, step))
      result.ids.push_back(
          {member.block, static_cast<uint8_t>(step), static_cast<uint8_t>(batches_of(member))});
  std::sort(result.ids.begin(), result.ids.end());
  return result;
}

uint32_t sync_steps(const SyncRound& round) {
  uint32_t steps = 0;
  for (const RoundMember& member : round.members)
    for (uint32_t step = steps; step < batches_of(member); ++step)
      if (takes_part(member, step)) steps = step + 1;
  return steps;
}

}  // namespace flux
