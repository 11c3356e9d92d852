// Server: the role that owns shards: rows, dense ranges, and the ledger beside them.
//
// One file per verb: pull.cc, push.cc, passes.cc (open, close, progress), save.cc, load.cc. Each
// shard has one lock; a push judges, applies and commits inside it, so rows and ledger move as one.
// Threads: every public method is safe from any thread once the server is built, except load() and
// init_dense(), which belong before training. Failure: Status and per-shard answers.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "flux/api/model_shape.h"
#include "flux/api/server.h"
#include "flux/api/server_control.h"
#include "flux/base/status.h"
#include "flux/checkpoint/shard_file.h"
#include "flux/optimizer/optimizer.h"
#include "flux/protocol/shard_replica.h"
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
};

struct ServerTotals {
  uint64_t rows = 0;
  std::vector<uint64_t> occurrences;  // by table: sum of the integer counters of its rows
  uint64_t memory_bytes = 0;
  // The least and the most examples that any dense shard has counted; both 0 without dense shards.
  uint64_t dense_examples_min = 0;
  uint64_t dense_examples_max = 0;
};

class Server final : public ServerPort, public ServerControlPort {
 public:
  static Result<std::unique_ptr<Server>> create(const ServerOptions& options);

  // Verbs of workers (api/server.h).
  void pull(const PullRequest& request, std::function<void(const PullReply&)> done) override;
  void push(const PushRequest& request, std::function<void(const PushReply&)> done) override;

  // Verbs of the coordinator (api/server_control.h).
  Status open_pass(uint32_t pass, uint64_t geometry) override;
  void close_below(uint32_t pass) override;
  std::vector<uint32_t> marked_by_all(const BlockId& section, uint32_t blocks) const override;
  Result<std::vector<SavedShard>> save(const std::string& folder, uint64_t number) override;

  // Like marked_by_all(), but the batches that at least one shard has. After a restore a batch may
  // be on some shards only; it is trained again for the others.
  std::vector<uint32_t> marked_by_any(const BlockId& section, uint32_t blocks) const;

  // Before training.
  void init_dense(std::span<const float> parameters);
  Status load(const ShardImage& image);

  uint32_t shard_count() const { return static_cast<uint32_t>(shards_.size()); }
  uint32_t sparse_shards() const { return options_.shards; }
  const ServerOptions& options() const { return options_; }
  ServerTotals totals() const;
  // Calls visit(key, count) for every row of the first table. Not while training.
  template <typename Visit>
  void for_each_row(Visit visit) const {
    for (const auto& shard : shards_)
      if (!shard->tables.empty())
        shard->tables[0].for_each(
            [&](Key key, uint32_t count, const float*) { visit(key, count); });
  }
  // Order-free hash of everything a model is made of. Not while training.
  uint64_t content_hash() const;

 private:
  struct Shard {
    mutable std::mutex mutex;
    ShardReplica replica;
    std::vector<SparseShard> tables;    // of a sparse shard
    std::unique_ptr<DenseShard> dense;  // of a dense shard
    uint64_t dense_begin = 0;           // its range of the flat vector
    uint64_t dense_size = 0;
  };
  explicit Server(const ServerOptions& options) : options_(options) {}
  ShardImage image_of(const Shard& shard) const;
  void build_shards();
  void prefetch_ahead(const ShardedKeys& keys, std::span<const ShardId> shards, size_t i) const;
  ShardAnswer push_one(const PushRequest& request, size_t i);
  const float* dense_gradient(const PushRequest& request, const Shard& shard) const;
  uint64_t payload_hash(const PushRequest& request, const Shard& shard,
                        std::span<const uint32_t> dims) const;

  ServerOptions options_;
  std::vector<std::unique_ptr<const Optimizer>> table_rules_;
  std::unique_ptr<const Optimizer> dense_rule_;
  std::vector<uint32_t> dims_;
  std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace flux
