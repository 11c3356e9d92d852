// SavedShard: one shard file of a checkpoint, as its server reports it to the coordinator. A value.
// The file is on disk, flushed, when the report is made.
#pragma once

#include <cstdint>
#include <string>

#include "flux/protocol/shard_replica.h"

namespace flux {

// One shard file of a checkpoint, as a manifest names it.
struct SavedShard {
  ShardId shard = 0;
  std::string name;  // of the file, inside the checkpoint's folder
  uint64_t bytes = 0;
  uint64_t hash = 0;
  uint64_t op = 0;
  uint64_t stream_hash = 0;
  uint64_t rows = 0;  // of all its tables; of a dense shard: numbers
  // Whether the file is an increment, and then the saved state that it continues: the one that the
  // checkpoint named as committed last has of this shard.
  bool incremental = false;
  uint64_t base_op = 0;
  uint64_t base_stream_hash = 0;
};

}  // namespace flux
