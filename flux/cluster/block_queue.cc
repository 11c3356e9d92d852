#include "flux/cluster/block_queue.h"

#include <algorithm>
#include <utility>

#include "flux/base/check.h"

namespace flux {

const char* block_state_name(BlockState state) {
  switch (state) {
    case BlockState::kTodo:
      return "todo";
    case BlockState::kPending:
      return "pending";
    case BlockState::kApplied:
      return "applied";
    case BlockState::kDone:
      return "done";
  }
  return "unknown";
}

BlockQueue::BlockQueue(BlockId section, std::vector<uint8_t> batches, std::vector<uint32_t> order)
    : section_(section), states_(batches.size()), order_(std::move(order)) {
  FLUX_CHECK(order_.size() == states_.size(), "an order names every block once");
  for (size_t b = 0; b < states_.size(); ++b) states_[b].batches = batches[b];
  todo_.assign(order_.begin(), order_.end());
}

void BlockQueue::set_state(Block* block, BlockState state) {
  applied_ -= block->state == BlockState::kApplied ? 1 : 0;
  done_ -= block->state == BlockState::kDone ? 1 : 0;
  block->state = state;
  applied_ += state == BlockState::kApplied ? 1 : 0;
  done_ += state == BlockState::kDone ? 1 : 0;
}

void BlockQueue::recompute(std::span<const uint32_t> marked_by_all, bool safe) {
  FLUX_CHECK(marked_by_all.size() == states_.size(), "one mask per block");
  todo_.clear();
  for (const uint32_t b : order_) {
    Block& block = states_[b];
    const uint32_t all = batch_mask(block.batches);
    block.applied_mask = marked_by_all[b] & all;
    block.safe_mask = safe ? block.applied_mask : 0;
    if (block.applied_mask == all) {
      set_state(&block, safe ? BlockState::kDone : BlockState::kApplied);
    } else if (block.state != BlockState::kPending) {
      set_state(&block, BlockState::kTodo);
      todo_.push_back(b);
    }
  }
}

bool BlockQueue::lease(WorkerId worker, BlockLease* out) {
  if (todo_.empty()) return false;
  const uint32_t b = todo_.front();
  todo_.pop_front();
  Block& block = states_[b];
  set_state(&block, BlockState::kPending);
  block.worker = worker;
  ++block.attempts;
  *out = BlockLease{section_, block.batches, block.safe_mask, block.attempts};
  out->id.block = b;
  return true;
}

void BlockQueue::batch_applied(const BatchId& id) {
  BlockId section = id.block;
  section.block = section_.block;
  if (section != section_ || id.block.block >= states_.size()) return;  // a late hint
  Block& block = states_[id.block.block];
  block.applied_mask |= 1U << id.batch;
  if (block.applied_mask != batch_mask(block.batches)) return;
  if (block.state == BlockState::kTodo) std::erase(todo_, id.block.block);
  if (block.state != BlockState::kDone) set_state(&block, BlockState::kApplied);
}

void BlockQueue::release(WorkerId worker) {
  for (auto at = order_.rbegin(); at != order_.rend(); ++at) {
    Block& block = states_[*at];
    if (block.state != BlockState::kPending || block.worker != worker) continue;
    set_state(&block, BlockState::kTodo);
    todo_.push_front(*at);
  }
}

void BlockQueue::all_applied_are_safe() {
  for (Block& block : states_) {
    block.safe_mask = block.applied_mask;
    if (block.state == BlockState::kApplied) set_state(&block, BlockState::kDone);
  }
}

}  // namespace flux
