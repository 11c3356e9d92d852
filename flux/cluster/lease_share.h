// How many leases one worker may hold (guided self-scheduling).
//
// Workers lease seconds of work ahead, so that nobody notices a coordinator that is away. Near the
// end of a section that would be unfair: one holds its last blocks while others have nothing to do.
// So a worker holds at most its part, by threads, of half of what nobody holds yet; as that
// shrinks, so do the leases. A floor keeps its threads at work: about a block more than they have
// in flight. Pure; nothing fails.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace flux {

struct LeaseShare {
  static constexpr uint64_t kBatchesPerLane = 8;  // the floor: what a lane has in flight, roughly
  static constexpr uint64_t kHoldBack = 2;        // so many shares like this one are left for later

  uint64_t todo = 0;          // blocks that nobody holds
  uint32_t threads = 1;       // of the worker
  uint64_t threads_all = 1;   // of all workers
  uint64_t held_blocks = 0;   // by the worker
  uint64_t held_batches = 0;  // of them, those not known to be applied

  bool may_lease() const {
    const uint64_t mine = std::max(1U, threads);
    if (held_batches < mine * kBatchesPerLane) return true;
    return held_blocks < todo * mine / (kHoldBack * std::max(mine, threads_all));
  }
};

}  // namespace flux
