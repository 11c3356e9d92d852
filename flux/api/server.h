// What a server does for workers: pull and push, one request per server and batch.
//
// Requests point at the caller's memory (no copies in one process; spans on the wire later), which
// must stay untouched until `done` is called. Sparse shards are 0..S-1 and hold the rows of every
// table whose keys hash there; dense shards follow, each a range of the flat dense vector.
// Threads: any; `done` may be called before the method returns, or on another thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "flux/base/status.h"
#include "flux/protocol/push_session.h"
#include "flux/protocol/shard_replica.h"
#include "flux/protocol/sync_step.h"

namespace flux {

// Keys of one table grouped by shard: those of sparse shard s are [begin[s], begin[s + 1]).
struct ShardedKeys {
  const uint64_t* keys = nullptr;
  const uint32_t* begin = nullptr;  // [sparse shards + 1]
};

struct PullRequest {
  uint64_t incarnation = 0;
  std::span<const ShardId> shards;
  ShardedKeys keys;          // the same for every table
  std::span<float*> tables;  // table t: rows -> tables[t] + position * dim
  float* dense = nullptr;    // flat dense vector; null: not wanted
};

struct PullReply {
  Status status;  // kStale: another incarnation
};

struct PushRequest {
  PushClaim claim;
  std::span<const ShardId> shards;
  std::span<const ShardEpoch> epochs;
  ShardedKeys keys;
  const uint32_t* counts = nullptr;      // occurrences of each key
  std::span<const float* const> tables;  // gradients as the pulled rows lie
  const float* dense = nullptr;          // gradient of the flat dense vector
  uint64_t examples = 0;                 // in the batches claimed
  // Sync mode: the step that this push is a part of. It is answered when the step is poured.
  const SyncStep* step = nullptr;
};

struct PushReply {
  std::vector<ShardAnswer> answers;  // one per shard asked
  // Not ok: no answers came (kUnavailable: lost on the way, perhaps applied; else refused).
  Status status;
};

class ServerPort {
 public:
  virtual ~ServerPort() = default;
  virtual void pull(const PullRequest& request, std::function<void(const PullReply&)> done) = 0;
  virtual void push(const PushRequest& request, std::function<void(const PushReply&)> done) = 0;
};

}  // namespace flux
