// ShardSlot: the place of one shard in a server, whether a replica of it is here or not.
//
// Slots live as long as the server; replicas come and go. The mutex guards everything but the
// atomics. Private to server/.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "flux/api/replica_port.h"
#include "flux/protocol/shard_replica.h"
#include "flux/protocol/sync_reservoir.h"
#include "flux/server/forward.h"
#include "flux/server/save_plan.h"
#include "flux/table/dense_shard.h"
#include "flux/table/sparse_shard.h"

namespace flux {

// What a replica is made of, besides its protocol state.
struct ShardRows {
  std::vector<SparseShard> tables;    // of a sparse shard
  std::unique_ptr<DenseShard> dense;  // of a dense shard
  // What was saved of these rows. It goes with them: rows that arrive otherwise know no save.
  ShardSaves saves = {};
};

// A forwarded operation that waits for the ones before it, or for the rest of an install.
struct Incoming;
struct HeldOp {
  uint64_t op = 0;
  std::shared_ptr<Incoming> from;
  size_t place = 0;  // in its lists
};

// A copy of the shard that is arriving.
struct Installing {
  uint64_t copy = 0;
  ShardEpoch epoch;
  uint64_t op = 0;
  std::vector<std::string> parts;
  std::vector<uint8_t> has;
  size_t missing = 0;
};

struct ShardSlot {
  static constexpr uint32_t kOpBits = 40;

  mutable std::mutex mutex;
  ShardReplica replica;  // role kNone: nothing is here, but its epoch still fences
  ShardRows rows;
  SyncReservoir reservoir;
  bool complete = false;         // has lineage
  bool superseded = false;       // a primary that learned of a later epoch
  uint64_t loaded = 0;           // hash of the load that it came from, while nobody gave it a role
  Follower backup, learner;      // of a primary
  ServerId primary = kNoServer;  // of a backup: who sent the last forward, and when
  TimeNs primary_ns = 0;
  uint64_t installed = 0;  // number of the copy that it came from
  std::unique_ptr<Installing> installing;
  std::vector<HeldOp> held;
  // Of a primary: the backup's link in the upper bits, what it has acknowledged in the lower ones.
  std::atomic<uint64_t> acked{0};
  std::atomic<TimeNs> heard_ns{0};  // from the backup
  // Keys that workers pulled and pushed here, of this shard; read without the lock.
  mutable std::atomic<uint64_t> served{0};

  void set_backup_link(uint32_t link) { acked.store(uint64_t{link} << kOpBits); }
  // With the lock held, so that it takes no atomic addition.
  void count_served(uint64_t keys) const {
    served.store(served.load(std::memory_order_relaxed) + keys, std::memory_order_relaxed);
  }
  // Dense values in keys: about as many as a row's first line of memory has.
  static uint64_t keys_of_dense(uint64_t values) { return (values + 15) / 16; }
  uint64_t acked_op() const { return acked.load() & ((1ULL << kOpBits) - 1); }
};

// A forward as its receiver holds it: lists are copies, the memory is the sender's until `done`.
struct Incoming {
  Incoming(const ReplicateRequest& from, std::function<void(const ReplicateReply&)> when_done)
      : request(from),
        shards(from.push.shards.begin(), from.push.shards.end()),
        epochs(from.push.epochs.begin(), from.push.epochs.end()),
        tables(from.push.tables.begin(), from.push.tables.end()),
        dense_parts(from.push.dense_parts.begin(), from.push.dense_parts.end()),
        ops(from.ops.begin(), from.ops.end()),
        hashes(from.hashes.begin(), from.hashes.end()),
        done(std::move(when_done)) {
    request.push.shards = shards;
    request.push.epochs = epochs;
    request.push.tables = tables;
    request.push.dense_parts = dense_parts;
    request.ops = ops;
    request.hashes = hashes;
  }
  Incoming(const Incoming&) = delete;
  Incoming& operator=(const Incoming&) = delete;

  ReplicateRequest request;
  std::vector<ShardId> shards;
  std::vector<ShardEpoch> epochs;
  std::vector<const float*> tables, dense_parts;
  std::vector<uint64_t> ops, hashes;
  std::function<void(const ReplicateReply&)> done;
  std::atomic<size_t> missing{1};  // answers; one is the receiver's, until all shards were asked
  std::mutex mutex;
  std::vector<FollowRefusal> refused;  // guarded by mutex
};

}  // namespace flux
