// Coordinator: leases the blocks of the current section and keeps their states.
//
// Runs the pure decisions of cluster/ under one lock. It never touches an example or a row.
// Threads: all methods are safe from any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "flux/api/coordinator.h"
#include "flux/cluster/block_queue.h"

namespace flux {

class Coordinator final : public CoordinatorPort {
 public:
  // Every one of `shards` shards is served by server 0 under `epoch`.
  Coordinator(uint32_t shards, ShardEpoch epoch);

  // Starts a section: which batches every shard has already (`safe`: durably) decides what is left.
  void begin_section(const BlockId& section, std::vector<uint8_t> batches,
                     std::vector<uint32_t> order, std::span<const uint32_t> marked_by_all,
                     bool safe);
  // No more leases from now on.
  void stop_leasing();

  LeaseReply lease(WorkerId worker) override;
  void batch_applied(const BatchId& id) override;
  ShardRoute route() override;

  bool section_applied() const;
  // Blocks by state: todo, pending, applied, done.
  struct Counts {
    size_t todo = 0, pending = 0, applied = 0, done = 0;
  };
  Counts counts() const;

 private:
  mutable std::mutex mutex_;
  std::optional<BlockQueue> queue_;
  bool stopping_ = false;
  ShardRoute route_;
};

}  // namespace flux
