// PourBatch: what one call poured, on its way to the followers: the shards that applied the same
// claim make one message, with the merged gradients as its memory.
//
// Used with the lock of one shard held at a time; shards rise within a call. Private to server/.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "flux/server/forward.h"
#include "flux/server/replicator.h"
#include "flux/server/sync_merger.h"

namespace flux {

class PourBatch {
 public:
  // `tables`: how many the model has.
  PourBatch(Replicator* replicator, size_t tables, uint32_t sparse_shards, uint32_t all_shards);

  SyncMerger& merger() { return merger_; }
  // What the merger holds was applied to this shard. Returns where its forwards go.
  struct Weight {
    uint64_t examples = 0;
    float lr_scale = 1;
    bool operator==(const Weight&) const = default;
  };
  Outbox* add_rows(const PushClaim& claim, Weight weight, ShardId shard);
  Outbox* add_dense(const PushClaim& claim, Weight weight, ShardId shard, size_t floats);
  // With no lock held.
  void send();

 private:
  struct Memory {
    std::vector<Key> keys;
    std::vector<uint32_t> begin, counts;
    std::vector<std::vector<float>> tables, dense;
    std::vector<const float*> table_list, dense_list;
  };
  struct Group {
    explicit Group(Replicator* replicator) : outbox(replicator) {}
    PushClaim claim;
    Weight weight;
    ShardId last = 0;
    uint32_t filled = 0;  // begin[0..filled] is final
    std::shared_ptr<Memory> memory = std::make_shared<Memory>();
    Outbox outbox;
  };
  Group* group(const PushClaim& claim, Weight weight, ShardId shard);

  Replicator* replicator_;
  size_t tables_;
  uint32_t sparse_shards_, all_shards_;
  SyncMerger merger_;
  std::list<Group> groups_;
};

}  // namespace flux
