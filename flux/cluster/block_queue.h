// BlockQueue: the blocks of one (pass, phase, epoch) and where each stands.
//
//   todo -> pending (leased) -> applied (every shard has it) -> done (replicated or durable)
//
// States are derived from the shards' own reports; what workers report is a hint that moves a
// block on sooner. Any restore or change of owners recomputes them, so applied and done can go back
// to todo. A lease carries the mask of batches that every shard already has safely; only the rest
// is trained again.
// Pure: events in, answers out; no clock, thread or file. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "flux/protocol/batch_id.h"

namespace flux {

using WorkerId = uint32_t;

enum class BlockState : uint8_t { kTodo, kPending, kApplied, kDone };
const char* block_state_name(BlockState state);

struct BlockLease {
  BlockId id;
  uint32_t batches = 0;    // in the block
  uint32_t skip_mask = 0;  // batches that all shards have: not to be trained again
  uint32_t attempt = 0;    // for logs only
};

class BlockQueue {
 public:
  // `section` gives pass, phase and epoch; block b has batches[b] batches; leases go out in `order`
  // (a permutation of the blocks).
  BlockQueue(BlockId section, std::vector<uint8_t> batches, std::vector<uint32_t> order);

  // Batches of each block that every shard has (the AND over shards of Ledger::marked), at the
  // start or after a restore or a change of owners. `safe` says that these are also replicated or
  // durable. Recomputes every state; leases stay with their workers.
  void recompute(std::span<const uint32_t> marked_by_all, bool safe);

  // The next block for a worker, or false when nothing is to do.
  bool lease(WorkerId worker, BlockLease* out);
  // A worker saw every shard acknowledge one batch of a block it trained.
  void batch_applied(const BatchId& id);
  // The worker is gone or gives back what it holds: pending blocks return to the front of the
  // queue.
  void release(WorkerId worker);
  // Everything applied by now is in a committed manifest or replicated.
  void all_applied_are_safe();

  bool all_applied() const { return applied_ + done_ == states_.size(); }
  bool all_done() const { return done_ == states_.size(); }
  size_t todo() const { return todo_.size(); }
  size_t pending() const { return states_.size() - todo_.size() - applied_ - done_; }
  size_t applied() const { return applied_; }
  size_t done() const { return done_; }
  BlockState state(uint32_t block) const { return states_[block].state; }
  const BlockId& section() const { return section_; }

 private:
  struct Block {
    BlockState state = BlockState::kTodo;
    uint8_t batches = 0;
    uint32_t applied_mask = 0;
    uint32_t safe_mask = 0;
    uint32_t attempts = 0;
    WorkerId worker = 0;
  };
  void set_state(Block* block, BlockState state);

  BlockId section_;
  std::vector<Block> states_;
  std::vector<uint32_t> order_;
  std::deque<uint32_t> todo_;
  size_t applied_ = 0;
  size_t done_ = 0;
};

}  // namespace flux
