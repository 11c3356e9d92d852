// Server: the role that owns shards: rows, dense ranges, and the ledger beside them.
//
// One file per verb: pull.cc, push.cc, push_sync.cc, passes.cc (open, mark, close, progress),
// save.cc, load.cc. Each shard has one lock; a push judges, applies and commits inside it, so rows
// and ledger move as one. A server may own a part of the shards; everything it reports is about
// that part. Threads: every public method is safe from any thread once the server is built, except
// load(), init_dense() and what says so. `done` is never called with a lock held. Failure: Status
// and per-shard answers; nothing in a request can break the server.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "flux/api/dense_shards.h"
#include "flux/api/saved_shard.h"
#include "flux/api/server.h"
#include "flux/base/status.h"
#include "flux/checkpoint/shard_file.h"
#include "flux/optimizer/optimizer.h"
#include "flux/protocol/shard_replica.h"
#include "flux/protocol/sync_reservoir.h"
#include "flux/storage/files.h"
#include "flux/table/dense_shard.h"
#include "flux/table/sparse_shard.h"

namespace flux {

struct ServerOptions {
  uint32_t shards = 256;  // sparse shards, 1..65536
  std::vector<TableOptions> tables;
  OptimizerOptions dense_optimizer;
  uint64_t parameters = 0;  // floats in the flat dense vector
  uint64_t incarnation = 0;
  ShardEpoch epoch;
  // Shards that this server has, sorted; dense shards are numbered after the sparse ones. Unset:
  // all.
  std::optional<std::vector<ShardId>> owned = {};
  Files* files = nullptr;  // where save() writes; null: the machine's
  // Gradients that may wait for the rest of their sync step; beyond it pushes are put off.
  uint64_t sync_bytes_max = 2ULL << 30;
};

struct ServerTotals {
  uint64_t rows = 0;
  std::vector<uint64_t> occurrences;  // by table: sum of the integer counters of its rows
  uint64_t memory_bytes = 0;
  // The least and the most examples that any dense shard has counted; both 0 without dense shards.
  uint64_t dense_examples_min = 0;
  uint64_t dense_examples_max = 0;
  bool has_dense = false;
  uint64_t pulls = 0, pushes = 0;  // requests served
};

class SyncMerger;  // server/sync_merger.h

class Server final : public ServerPort {
 public:
  static Result<std::unique_ptr<Server>> create(const ServerOptions& options);

  // Verbs of workers (api/server.h).
  void pull(const PullRequest& request, std::function<void(const PullReply&)> done) override;
  void push(const PushRequest& request, std::function<void(const PushReply&)> done) override;

  // Verbs of the coordinator, each of one file (api/server_admin.h has their meaning).
  Status open_pass(uint32_t pass, uint64_t geometry);
  void close_below(uint32_t pass);
  std::vector<uint32_t> marked_by_all(const BlockId& section, uint32_t blocks) const;
  Result<std::vector<SavedShard>> save(const std::string& folder, uint64_t number);

  // Like marked_by_all(), but the batches that at least one shard has. After a restore a batch may
  // be on some shards only; it is trained again for the others.
  std::vector<uint32_t> marked_by_any(const BlockId& section, uint32_t blocks) const;
  // Gives batches a verdict other than applied on every shard. Idempotent. kStale names a batch
  // that has another verdict somewhere (nothing is marked then, unless it came by in between).
  Status mark(uint64_t geometry, std::span<const BatchId> ids, Verdict verdict);
  // Sync: this member of the round is gone; what of it has not arrived counts as empty. Idempotent.
  Status void_member(uint64_t round, const BlockId& block);
  // Serves no more: pushes are answered kNotServing, also those that wait for their step.
  void seal();
  // What sync steps wait for, for people; empty: nothing. One shard stands for all.
  std::string sync_waits() const;

  // Before training. The whole flat vector; the server takes its ranges.
  void init_dense(std::span<const float> parameters);
  // Each shard once.
  Status load(const ShardImage& image);

  // Shards of the job, here or elsewhere.
  uint32_t shard_count() const { return static_cast<uint32_t>(shards_.size()); }
  const std::vector<ShardId>& owned() const { return owned_; }
  bool owns(ShardId shard) const { return shard < shards_.size() && shards_[shard] != nullptr; }
  uint32_t sparse_shards() const { return options_.shards; }
  const ServerOptions& options() const { return options_; }
  ServerTotals totals() const;
  // Calls visit(key, count) for every row of the first table. Not while training.
  template <typename Visit>
  void for_each_row(Visit visit) const {
    for (const ShardId id : owned_)
      if (!shards_[id]->tables.empty())
        shards_[id]->tables[0].for_each(
            [&](Key key, uint32_t count, const float*) { visit(key, count); });
  }
  // For audits: an owned shard as it is now, rows and ledger of the same moment; or its protocol
  // state alone.
  ShardImage image(ShardId shard) const;
  ShardReplica replica(ShardId shard) const;
  // Order-free hash of everything a model is made of; those of servers with different shards add up
  // to that of one server with all of them. Not while training.
  uint64_t content_hash() const;

 private:
  struct Shard {
    mutable std::mutex mutex;
    ShardReplica replica;
    SyncReservoir reservoir;
    std::vector<SparseShard> tables;    // of a sparse shard
    std::unique_ptr<DenseShard> dense;  // of a dense shard
    uint64_t dense_begin = 0;           // its range of the flat vector
    uint64_t dense_size = 0;
  };
  explicit Server(const ServerOptions& options) : options_(options) {}
  static Status check_options(const ServerOptions& options);
  ShardImage image_of(const Shard& shard) const;
  void build_shards();
  std::unique_ptr<Shard> build_shard(ShardId id,
                                     std::span<const std::shared_ptr<RowArena>> arenas) const;
  void prefetch_ahead(const ShardedKeys& keys, std::span<const ShardId> shards, size_t i) const;
  // request.cc: whether the part of a request that concerns one shard can be used.
  bool range_is_good(const ShardedKeys& keys, ShardId shard) const;
  bool keys_are_good(const ShardedKeys& keys, ShardId shard) const;
  bool gradient_is_good(const PushRequest& request, ShardId shard) const;
  Status check_pull(const PullRequest& request) const;
  const float* dense_of(const PushRequest& request, const Shard& shard) const;
  void pull_dense(const PullRequest& request, const Shard& shard) const;
  std::optional<Answer> refuse(const PushRequest& request, ShardId id) const;

  ShardAnswer push_one(const PushRequest& request, size_t i);

  // push_sync.cc
  struct SyncPush;
  using SyncPushes = std::vector<std::shared_ptr<SyncPush>>;
  void push_sync(const PushRequest& request, std::function<void(const PushReply&)> done);
  void push_sync_shard(const std::shared_ptr<SyncPush>& push, size_t i, SyncMerger* merger,
                       SyncPushes* finished);
  // Pours every step that is complete; the shard's lock is held. The answers are to be settled
  // without it.
  void pour_all(Shard* shard, SyncMerger* merger, std::vector<SyncPour::Reply>* answers);
  uint64_t apply_pour(Shard* shard, const SyncPour& pour, SyncMerger* merger);
  // Puts an answer into its push; one that has all of them is added to `finished`.
  void settle(const SyncPour::Reply& reply, SyncPushes* finished);
  void finish(const SyncPushes& finished);
  // Changes each owned shard inside its lock, then pours what that completed.
  using Replies = std::vector<SyncPour::Reply>;
  void change_shards(const std::function<void(Shard*, Replies*)>& change);
  uint64_t gradient_bytes(const PushRequest& request, ShardId id) const;
  uint64_t payload_hash(const PushRequest& request, const Shard& shard) const;

  ServerOptions options_;
  std::vector<std::unique_ptr<const Optimizer>> table_rules_;
  std::unique_ptr<const Optimizer> dense_rule_;
  std::vector<uint32_t> dims_;
  std::vector<std::unique_ptr<Shard>> shards_;  // by ShardId; null: elsewhere
  std::vector<ShardId> owned_;
  mutable std::atomic<uint64_t> pulls_{0}, pushes_{0};
  std::atomic<uint64_t> sync_bytes_{0};  // that wait
};

}  // namespace flux
