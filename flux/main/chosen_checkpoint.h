// Which checkpoint of a job a person means: `--checkpoint newest|best|NUMBER|PATH`.
//
// Reads folders and best.json, no shard. Threads: any.
// Failure: kInvalid that says what is wrong and lists the checkpoints that are there.
#pragma once

#include <cstdint>
#include <string>

#include "flux/base/status.h"
#include "flux/job/job.h"

namespace flux {

struct CheckpointPlace {
  std::string folder;  // of a CheckpointStore
  uint64_t number = 0;
};

// Of the folder of one checkpoint, by its name (000004).
Result<CheckpointPlace> checkpoint_at(const std::string& folder);
// `which`: as above; "" is "newest".
Result<CheckpointPlace> choose_checkpoint(const Job& job, const std::string& which);

}  // namespace flux
