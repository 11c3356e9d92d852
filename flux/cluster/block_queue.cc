#include "flux/cluster/block_queue.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "flux/base/check.h"

namespace flux {
namespace {
constexpr double kAverageWeight = 1.0 / 8;  // of the newest block in the moving average
constexpr double kTimeoutMaxNs = 1e18;      // keeps the sum with any time inside TimeNs
}  // namespace

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
    case BlockState::kAside:
      return "aside";
  }
  return "unknown";
}

BlockQueue::BlockQueue(BlockId section, std::vector<uint8_t> batches, std::vector<uint32_t> order,
                       BlockQueueOptions options)
    : section_(section), options_(options), blocks_(batches.size()), order_(std::move(order)) {
  FLUX_CHECK(order_.size() == blocks_.size(), "an order names every block once");
  for (size_t b = 0; b < blocks_.size(); ++b) blocks_[b].batches = batches[b];
  for (uint32_t rank = 0; rank < order_.size(); ++rank) {
    FLUX_CHECK(order_[rank] < blocks_.size(), "an order names every block once");
    blocks_[order_[rank]].rank = rank;
    todo_.insert(todo_.end(), rank);
  }
}

BlockQueue::Block* BlockQueue::find(const BatchId& id) {
  BlockId section = id.block;
  section.block = section_.block;
  if (section != section_ || id.block.block >= blocks_.size()) return nullptr;
  Block& block = blocks_[id.block.block];
  return id.batch < block.batches ? &block : nullptr;
}

void BlockQueue::set_state(uint32_t b, BlockState state) {
  Block& block = blocks_[b];
  if (block.state == state) return;
  const auto count = [&](BlockState of, bool in) {
    const auto step = [in](size_t* n) { *n += in ? 1 : static_cast<size_t>(-1); };
    switch (of) {
      case BlockState::kTodo:
        if (in) todo_.insert(block.rank);
        if (!in) todo_.erase(block.rank);
        break;
      case BlockState::kPending:
        if (in) pending_.insert(b);
        if (!in) pending_.erase(b);
        break;
      case BlockState::kApplied:
        step(&applied_);
        break;
      case BlockState::kDone:
        step(&done_);
        break;
      case BlockState::kAside:
        step(&aside_);
        break;
    }
  };
  count(block.state, false);
  block.state = state;
  count(state, true);
}

void BlockQueue::set_resting_state(uint32_t b) {
  const Block& block = blocks_[b];
  if (block.applied_mask == block.all())
    set_state(b, block.safe_mask == block.all() ? BlockState::kDone : BlockState::kApplied);
  else
    set_state(b, block.waits_for_verdict() ? BlockState::kAside : BlockState::kTodo);
}

void BlockQueue::recompute(std::span<const uint32_t> marked_by_all, bool safe) {
  FLUX_CHECK(marked_by_all.size() == blocks_.size(), "one mask per block");
  for (uint32_t b = 0; b < blocks_.size(); ++b) {
    Block& block = blocks_[b];
    const uint32_t before = block.applied_mask;
    block.applied_mask = marked_by_all[b] & block.all();
    block.safe_mask = safe ? block.applied_mask : 0;
    // What was applied and is not any more: files written meanwhile may lack it, too.
    if ((block.point_mask & ~block.applied_mask) != 0) point_void_ = true;
    hand_over(b, block.condemned_mask & before & ~block.applied_mask);
    // Whoever did what is lost now does not do it again.
    const uint32_t lost = before & ~block.applied_mask;
    for (auto& [worker, hands] : in_hand_)
      if (const auto at = hands.find(b); at != hands.end()) at->second.mask &= ~lost;
    settle(b);
  }
  // Only the shards acquit: a hint may be false, and many of them would hide a poisoned batch.
  std::erase_if(alone_deaths_, [&](const auto& deaths) {
    const auto [b, batch] = deaths.first;
    return ((blocks_[b].applied_mask >> batch) & 1) != 0;
  });
}

bool BlockQueue::may_lease(uint32_t b, const Hands& in_hand) const {
  if (!suspect(blocks_[b])) return true;
  return in_hand.empty() || (in_hand.size() == 1 && in_hand.begin()->first == b);
}

int BlockQueue::choose_alone(Block* block) const {
  for (uint32_t i = 0; i < block->batches; ++i) {
    const uint32_t batch = (block->next_alone + i) % block->batches;
    if ((block->applied_mask >> batch) & 1) continue;
    block->next_alone = static_cast<uint8_t>((batch + 1) % block->batches);
    return static_cast<int>(batch);
  }
  return kWhole;
}

BlockLease BlockQueue::lease_of(uint32_t b, int alone) const {
  const Block& block = blocks_[b];
  BlockLease lease{section_, block.batches, block.applied_mask, block.attempts, block.worker};
  lease.id.block = b;
  if (alone != kWhole) lease.skip_mask = block.all() & ~(1U << alone);
  return lease;
}

bool BlockQueue::lease(WorkerId worker, TimeNs now, BlockLease* out) {
  const auto hand = in_hand_.find(worker);
  static const Hands kNothing;
  const Hands& in_hand = hand == in_hand_.end() ? kNothing : hand->second;
  for (const auto& [b, hand_of] : in_hand)
    if (hand_of.alone != kWhole && blocks_[b].state == BlockState::kPending &&
        blocks_[b].worker == worker)
      return false;  // nothing beside a suspect
  // A block whose lease ran out in this worker's hands is better tried by another.
  std::optional<uint32_t> chosen;
  for (const uint32_t rank : todo_) {
    const uint32_t b = order_[rank];
    if (!may_lease(b, in_hand) || (in_hand.contains(b) && !blocks_[b].former_may)) continue;
    if (!chosen || !in_hand.contains(b)) chosen = b;
    if (!in_hand.contains(b)) break;
  }
  if (!chosen) return false;
  const uint32_t b = *chosen;
  Block& block = blocks_[b];
  take_lease(b, worker, now);
  reissued_ += std::exchange(block.came_back, false) ? 1 : 0;
  const int alone = suspect(block) ? choose_alone(&block) : kWhole;
  *out = lease_of(b, alone);
  in_hand_[worker][b] = {alone, block.all() & ~out->skip_mask};
  return true;
}

bool BlockQueue::lend(WorkerId worker, TimeNs now, BlockLease* out) {
  if (!todo_.empty()) return false;
  const auto hand = in_hand_.find(worker);
  const auto has = [&](uint32_t b) { return hand != in_hand_.end() && hand->second.contains(b); };
  const auto stuck_for = std::max(options_.lend_after_ns, static_cast<TimeNs>(average_ns_));
  for (const uint32_t b : pending_) {
    const Block& block = blocks_[b];
    if (block.worker == worker || suspect(block) || has(b)) continue;
    if (now - moved_[block.worker] < stuck_for) continue;
    run_out(b, now);
    return lease(worker, now, out);
  }
  return false;
}

void BlockQueue::take_lease(uint32_t b, WorkerId worker, TimeNs now) {
  Block& block = blocks_[b];
  set_state(b, BlockState::kPending);
  std::erase(block.former, worker);
  block.worker = worker;
  block.leased_ns = block.moved_ns = now;
  if (!moved_.contains(worker) || !in_hand_.contains(worker)) moved_[worker] = now;
  ++block.attempts;
}

bool BlockQueue::adopt(WorkerId worker, const BlockId& id, uint32_t applied, TimeNs now) {
  const Block* block = find({id, 0, 1});
  if (block == nullptr) return false;
  const uint32_t b = id.block;
  const bool has_it = block->state == BlockState::kPending && block->worker == worker;
  if (block->state == BlockState::kTodo && (applied & block->all()) != block->all()) {
    take_lease(b, worker, now);
    in_hand_[worker][b] = {kWhole, block->all() & ~block->applied_mask};
  } else if (!has_it) {
    return false;
  }
  for (uint8_t i = 0; i < block->batches; ++i)
    if (((applied >> i) & 1) != 0) batch_applied({id, i, block->batches}, now);
  return block->state == BlockState::kPending && block->worker == worker;
}

void BlockQueue::drop_hand(WorkerId worker, uint32_t b) {
  const auto hand = in_hand_.find(worker);
  if (hand == in_hand_.end()) return;
  hand->second.erase(b);
  if (hand->second.empty()) in_hand_.erase(hand);
}

void BlockQueue::settle(uint32_t b) {
  Block& block = blocks_[b];
  const bool finished = block.applied_mask == block.all();
  const auto is_over = [&](WorkerId worker) {
    if (!finished && (in_hand_[worker][b].mask & ~block.applied_mask) != 0) return false;
    drop_hand(worker, b);
    return true;
  };
  std::erase_if(block.former, is_over);
  if (block.state != BlockState::kPending || is_over(block.worker)) set_resting_state(b);
}

void BlockQueue::take_mark(uint32_t b, uint32_t batch) {
  blocks_[b].applied_mask |= 1U << batch;
  settle(b);
}

void BlockQueue::batch_applied(const BatchId& id, TimeNs now) {
  Block* block = find(id);
  if (block == nullptr) return;  // a late hint
  const uint32_t b = id.block.block;
  survived_ += ((block->applied_mask >> id.batch) & 1) == 0 ? 1 : 0;
  const bool whole =
      block->state == BlockState::kPending && in_hand_[block->worker][b].alone == kWhole;
  block->moved_ns = std::max(block->moved_ns, now);
  if (block->state == BlockState::kPending) moved_[block->worker] = now;
  take_mark(b, id.batch);
  if (!whole || block->state == BlockState::kPending) return;
  const auto took = static_cast<double>(std::max<TimeNs>(0, now - block->leased_ns));
  average_ns_ = average_ns_ == 0 ? took : average_ns_ + (took - average_ns_) * kAverageWeight;
}

void BlockQueue::give_back(uint32_t b) {
  blocks_[b].came_back = true;
  set_resting_state(b);
}

void BlockQueue::run_out(uint32_t b, TimeNs now) {
  Block& block = blocks_[b];
  block.former.push_back(block.worker);
  block.moved_ns = now;
  block.former_may = false;
  give_back(b);
}

void BlockQueue::count_death(uint32_t b, int alone, bool alone_in_hand) {
  Block& block = blocks_[b];
  ++block.deaths;
  if (alone == kWhole || !alone_in_hand) {
    ++block.shared_deaths;
    return;
  }
  ++alone_deaths_[{b, alone}];
  const bool condemned = ((block.condemned_mask >> alone) & 1) != 0;
  if (condemned || options_.deaths_alone_max == 0) return;
  if (alone_deaths_[{b, alone}] < deaths_needed(b, alone)) return;
  block.condemned_mask |= 1U << alone;
  hand_over(b, 1U << alone);
}

uint32_t BlockQueue::deaths_needed(uint32_t b, int alone) const {
  const uint32_t least = options_.deaths_alone_max;
  const uint64_t here = blocks_[b].shared_deaths + alone_deaths_.at({b, alone});
  const auto elsewhere = static_cast<double>(deaths_ - std::min(deaths_, here));
  if (elsewhere == 0 || options_.innocent_chance <= 0) return least;
  const double rate = elsewhere / (elsewhere + static_cast<double>(survived_) + 1);
  const double needed = std::ceil(std::log(options_.innocent_chance) / std::log(rate));
  const double most = static_cast<double>(least) * kDeathsFactor;
  return std::max(least, static_cast<uint32_t>(std::clamp(needed, 0.0, most)));
}

void BlockQueue::hand_over(uint32_t b, uint32_t batches) {
  for (uint8_t batch = 0; batches != 0 && batch < blocks_[b].batches; ++batch) {
    const BatchId id{lease_of(b, kWhole).id, batch, blocks_[b].batches};
    const bool waits = std::find(poisoned_.begin(), poisoned_.end(), id) != poisoned_.end();
    if (((batches >> batch) & 1) != 0 && !waits) poisoned_.push_back(id);
  }
}

void BlockQueue::release(WorkerId worker, bool died, const std::set<BlockId>& not_begun) {
  moved_.erase(worker);
  const auto hand = in_hand_.extract(worker);
  if (hand.empty()) return;
  deaths_ += died ? 1 : 0;
  const auto begun = [&](uint32_t b) { return !not_begun.contains(lease_of(b, kWhole).id); };
  const auto accused = std::count_if(hand.mapped().begin(), hand.mapped().end(),
                                     [&](const auto& one) { return begun(one.first); });
  for (const auto& [b, hand_of] : hand.mapped()) {
    Block& block = blocks_[b];
    if (died && begun(b)) count_death(b, hand_of.alone, accused == 1);
    const bool held = block.state == BlockState::kPending && block.worker == worker;
    std::erase(block.former, worker);
    if (held) give_back(b);
    if (block.state == BlockState::kTodo) set_resting_state(b);  // condemned by a former holder
  }
}

void BlockQueue::release_block(WorkerId worker, const BlockId& id) {
  const Block* block = find({id, 0, 1});
  if (block == nullptr) return;
  const uint32_t b = id.block;
  const bool held = block->state == BlockState::kPending && block->worker == worker;
  std::erase(blocks_[b].former, worker);
  drop_hand(worker, b);
  if (held) give_back(b);
}

TimeNs BlockQueue::timeout_ns() const {
  const double by_average = std::min(options_.timeout_factor * average_ns_, kTimeoutMaxNs);
  return std::max(options_.timeout_floor_ns, static_cast<TimeNs>(by_average));
}

std::vector<BlockLease> BlockQueue::expire(TimeNs now) {
  std::vector<BlockLease> expired;
  const TimeNs timeout = timeout_ns();
  for (auto at = pending_.begin(); at != pending_.end();) {
    const uint32_t b = *at++;  // giving it back takes it out
    const Block& block = blocks_[b];
    if (now - block.moved_ns < timeout) continue;
    expired.push_back(lease_of(b, in_hand_[block.worker][b].alone));
    run_out(b, now);
  }
  for (const auto& [worker, in_hand] : in_hand_)
    for (const auto& [b, hand_of] : in_hand)
      if (blocks_[b].state == BlockState::kTodo && now - blocks_[b].moved_ns >= timeout)
        blocks_[b].former_may = true;
  return expired;
}

std::optional<TimeNs> BlockQueue::next_time() const {
  std::optional<TimeNs> earliest;
  for (const auto& [worker, in_hand] : in_hand_)
    for (const auto& [b, hand_of] : in_hand) {
      const Block& block = blocks_[b];
      const bool waits = block.state == BlockState::kTodo && !block.former_may;
      if (block.state == BlockState::kPending || waits)
        earliest = std::min(earliest.value_or(block.moved_ns), block.moved_ns);
    }
  if (earliest) *earliest += timeout_ns();
  return earliest;
}

std::vector<BatchId> BlockQueue::take_poisoned() {
  return std::exchange(poisoned_, {});
}

void BlockQueue::settled(const BatchId& id) {
  if (find(id) != nullptr) take_mark(id.block.block, id.batch);
}

void BlockQueue::absolve(const BatchId& id) {
  Block* block = find(id);
  if (block == nullptr) return;
  block->condemned_mask &= ~(1U << id.batch);
  block->deaths = block->shared_deaths = 0;
  alone_deaths_.erase({id.block.block, static_cast<int>(id.batch)});
  if (block->state == BlockState::kAside) set_resting_state(id.block.block);
}

uint64_t BlockQueue::mark_point() {
  for (Block& block : blocks_) block.point_mask = block.applied_mask;
  point_void_ = false;
  return ++point_;
}

void BlockQueue::applied_before_are_safe(uint64_t point) {
  if (point != point_ || point_void_) return;
  for (uint32_t b = 0; b < blocks_.size(); ++b) {
    Block& block = blocks_[b];
    block.safe_mask |= block.point_mask;
    if (block.state == BlockState::kApplied) set_resting_state(b);
  }
}

uint64_t BlockQueue::batches_held_by(WorkerId worker) const {
  const auto hand = in_hand_.find(worker);
  if (hand == in_hand_.end()) return 0;
  uint64_t batches = 0;
  for (const auto& [b, hand_of] : hand->second) {
    const Block& block = blocks_[b];
    if (block.state == BlockState::kPending && block.worker == worker)
      batches += static_cast<uint64_t>(std::popcount(hand_of.mask & ~block.applied_mask));
  }
  return batches;
}

size_t BlockQueue::held_by(WorkerId worker) const {
  const auto hand = in_hand_.find(worker);
  if (hand == in_hand_.end()) return 0;
  return static_cast<size_t>(
      std::count_if(hand->second.begin(), hand->second.end(), [&](const auto& entry) {
        const Block& block = blocks_[entry.first];
        return block.state == BlockState::kPending && block.worker == worker;
      }));
}

}  // namespace flux
