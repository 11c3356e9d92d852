// What is random in computing a batch: the same whenever and wherever it is trained, and for test
// data whenever, by whomever and after whichever pass it is evaluated. Pure.
#pragma once

#include "flux/base/hash.h"
#include "flux/protocol/batch_id.h"

namespace flux {

inline uint64_t batch_noise(const BatchId& id) {
  BlockId block = id.block;
  if (block.phase == kTestPhase) block.pass = block.epoch = 0;
  return hash_pair(
      hash_pair(hash_pair(block.pass, block.phase), hash_pair(block.epoch, block.block)), id.batch);
}

}  // namespace flux
