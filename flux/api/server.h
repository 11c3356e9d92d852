// What a server does for workers: pull and push, one request per server and batch.
//
// Requests point at the caller's memory (no copies in one process; spans of a frame over a
// network): keys, counts, rows and dense floats must stay untouched until `done` is called; the
// request itself and the lists in it (shards, epochs, tables, step) only until the method returns.
// Sparse shards are 0..S-1 and hold the rows of every table whose keys hash there (of some tables,
// where keys have groups: api/model_shape.h); dense shards follow, each a range of the flat dense
// vector (api/dense_shards.h).
// Threads: any; `done` is called once, perhaps before the method returns, perhaps on another
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "flux/api/lr_scale.h"
#include "flux/api/push_age.h"
#include "flux/base/status.h"
#include "flux/base/team.h"
#include "flux/protocol/push_session.h"
#include "flux/protocol/shard_replica.h"
#include "flux/protocol/sync_step.h"

namespace flux {

// Keys of one table grouped by shard: those of sparse shard s are [begin[s], begin[s + 1]).
struct ShardedKeys {
  const uint64_t* keys = nullptr;
  const uint32_t* begin = nullptr;  // [sparse shards + 1]
  // Of a request that a stranger made: the number of keys. Ranges are checked against it then, and
  // every key against its shard.
  uint32_t limit = kTrusted;
  static constexpr uint32_t kTrusted = ~0U;
};

struct PullRequest {
  uint64_t incarnation = 0;
  std::span<const ShardId> shards;
  ShardedKeys keys;  // the same for every table
  // Table t: rows -> tables[t] + (position - position of the table's first key) * dim. Null: not of
  // the phase.
  std::span<float*> tables;
  float* dense = nullptr;  // the phase's range of the flat dense vector; null: not wanted
  // Instead of `dense`: where the range of each dense shard goes; null: not wanted.
  std::span<float* const> dense_parts = {};
  // Of the network that wants it (api/model_shape.h): tables that are not of this phase are not
  // touched, and no dense shard of another one is named.
  uint32_t phase = 0;
  // The caller's, whose thread leads it: a server in the same process shares its work with it.
  // Null: none.
  Team* team = nullptr;
};

struct PullReply {
  // kStale: another incarnation; kUnavailable: a shard is not served here (refresh the map);
  // kInvalid: no honest request.
  Status status;
  bool unreached = false;  // the server did not say that: no connection, or no answer in time
  AgeMark mark = {};       // before anything was read
};

struct PushRequest {
  PushClaim claim;
  std::span<const ShardId> shards;
  std::span<const ShardEpoch> epochs;
  ShardedKeys keys;
  const uint32_t* counts = nullptr;                // occurrences of each key
  std::span<const float* const> tables;            // gradients as the pulled rows lie
  const float* dense = nullptr;                    // gradient of the phase's dense range
  std::span<const float* const> dense_parts = {};  // instead of `dense`: of each dense shard
  uint64_t examples = 0;                           // in the batches claimed
  // Multiplies the learning rate of every rule for this push (cluster/lr_policy.h). One that is not
  // is_lr_scale() is no honest request.
  float lr_scale = 1;
  AgeMark pulled = {};  // of the pull, at this server, of what the gradient was computed with
  // Sync mode: the step that this push is a part of. It is answered when the step is poured.
  const SyncStep* step = nullptr;
  // Keeps keys, counts, rows and dense floats alive and untouched for as long as it is held: what
  // is forwarded to a backup is not copied then. Null: the memory is good until `done`, and a
  // server that forwards makes a copy.
  std::shared_ptr<const void> memory = nullptr;
  bool as_bf16 = false, as_fp16 = false;  // gradients came so: they may travel so without loss
  Team* team = nullptr;                   // as in PullRequest
};

struct PushReply {
  std::vector<ShardAnswer> answers;  // one per shard asked
  // 0: what is answered applied or duplicate is replicated too (or has no backup). Else confirm()
  // says when it is.
  uint64_t receipt = 0;
  // Not ok: no answers came (kUnavailable: lost on the way, perhaps applied; else refused).
  Status status;
  bool unreached = false;  // as in PullReply
  // Examples that were applied since PushRequest::pulled; nothing: not known, or not applied now.
  std::optional<uint64_t> age = {};
};

// The phase of a push is that of its batches, which all have the same; it has a gradient for the
// tables and the dense shards of that phase alone, and marks all shards.
inline uint32_t phase_of(const PushRequest& request) {
  return request.claim.ids.empty() ? 0 : request.claim.ids.front().block.phase;
}

class ServerPort {
 public:
  virtual ~ServerPort() = default;
  virtual void pull(const PullRequest& request, std::function<void(const PullReply&)> done) = 0;
  virtual void push(const PushRequest& request, std::function<void(const PushReply&)> done) = 0;
  // The second acknowledgement: ok when all that the push of this receipt was answered for is
  // replicated. kStale: void (an epoch changed, or unknown here): push again. kUnavailable: ask on.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): who answers later keeps it
  virtual void confirm(uint64_t incarnation, uint64_t receipt, std::function<void(Status)> done) {
    (void)incarnation, (void)receipt;
    done(Status::ok());
  }
};

}  // namespace flux
