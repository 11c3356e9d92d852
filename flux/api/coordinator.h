// What the coordinator does for workers: lease blocks, take hints of progress, tell the map.
// It is never on the data path: asked once per block. Threads: any.
#pragma once

#include <cstdint>

#include "flux/cluster/block_queue.h"
#include "flux/protocol/push_session.h"

namespace flux {

struct LeaseReply {
  enum class Kind : uint8_t {
    kBlock,  // train `lease`
    kEnd,    // nothing left to lease in this section
  };
  Kind kind = Kind::kEnd;
  BlockLease lease;
};

class CoordinatorPort {
 public:
  virtual ~CoordinatorPort() = default;
  virtual LeaseReply lease(WorkerId worker) = 0;
  // A hint: every shard acknowledged this batch.
  virtual void batch_applied(const BatchId& id) = 0;
  virtual ShardRoute route() = 0;
};

}  // namespace flux
