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
  // Instead of `dense`, for a caller that wants some dense shards only: where the range of each
  // dense shard goes, counted from 0; null: not wanted.
  std::span<float* const> dense_parts = {};

  // Where the range of dense shard `d`, which begins at `begin`, goes; null: not wanted.
  float* dense_at(uint32_t d, uint64_t begin) const {
    if (!dense_parts.empty()) return d < dense_parts.size() ? dense_parts[d] : nullptr;
    return dense != nullptr ? dense + begin : nullptr;
  }
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
  // Instead of `dense`: the gradient of each dense shard's range, counted from 0; null: not here.
  std::span<const float* const> dense_parts = {};
  uint64_t examples = 0;  // in the batches claimed
  // Sync mode: the step that this push is a part of. It is answered when the step is poured.
  const SyncStep* step = nullptr;

  // The gradient of dense shard `d`, whose range begins at `begin`; null: not in this push.
  const float* dense_at(uint32_t d, uint64_t begin) const {
    if (!dense_parts.empty()) return d < dense_parts.size() ? dense_parts[d] : nullptr;
    return dense != nullptr ? dense + begin : nullptr;
  }
};

struct PushReply {
  std::vector<ShardAnswer> answers;  // one per shard asked
};

class ServerPort {
 public:
  virtual ~ServerPort() = default;
  virtual void pull(const PullRequest& request, std::function<void(const PullReply&)> done) = 0;
  virtual void push(const PushRequest& request, std::function<void(const PushReply&)> done) = 0;
};

}  // namespace flux
