// What a server does for the coordinator: open and close passes, report progress, save shards.
// Asked per section and per checkpoint, never per batch. Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flux/base/status.h"
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
  uint64_t rows = 0;
};

class ServerControlPort {
 public:
  virtual ~ServerControlPort() = default;
  // Before the first lease of a pass: its geometry, which every push must name.
  virtual Status open_pass(uint32_t pass, uint64_t geometry) = 0;
  // After a committed manifest closed every pass below `pass`. Idempotent.
  virtual void close_below(uint32_t pass) = 0;
  // For each of `blocks` blocks of a section: the batches that all of this server's shards have.
  virtual std::vector<uint32_t> marked_by_all(const BlockId& section, uint32_t blocks) const = 0;
  // Writes every shard, each at its own moment, into checkpoint `number` under `folder`.
  virtual Result<std::vector<SavedShard>> save(const std::string& folder, uint64_t number) = 0;
};

}  // namespace flux
