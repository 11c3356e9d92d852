#include "flux/worker/block_store.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

namespace flux {
namespace {

uint32_t batches_of(const BlockLease& lease) {
  return static_cast<uint32_t>(std::popcount(batch_mask(lease.batches) & ~lease.skip_mask));
}

}  // namespace

void FinishedBatches::add(FinishedBatches more) {
  std::move(more.applied.begin(), more.applied.end(), std::back_inserter(applied));
  std::move(more.evaluated.begin(), more.evaluated.end(), std::back_inserter(evaluated));
  std::move(more.refused.begin(), more.refused.end(), std::back_inserter(refused));
}

void FinishedBatches::add_to(LeaseRequest* request) const {
  request->applied.insert(request->applied.end(), applied.begin(), applied.end());
  request->evaluated.insert(request->evaluated.end(), evaluated.begin(), evaluated.end());
  request->refused.insert(request->refused.end(), refused.begin(), refused.end());
}

BlockStore::BlockStore(const BlockStoreOptions& options) : options_(options) {}

void BlockStore::set_wake(std::function<void()> wake) {
  wake_ = std::move(wake);
}

void BlockStore::set_changed(std::function<void()> changed) {
  changed_ = std::move(changed);
}

// Nothing in it that the trainer could take, now or later.
bool BlockStore::holds_nothing() const {
  return ready_ == 0 && blocks_opening_ == 0 && blocks_unopened_ == 0;
}

bool BlockStore::wants_lease() const {
  if (leasing_ || ended_ || stopping()) return false;
  if (options_.only_when_idle) return needed_ && quiet();
  const size_t blocks = blocks_.size() + blocks_opening_ + blocks_unopened_;
  return blocks < options_.blocks_max &&
         ready_ + opening_ + unopened_ < std::max(options_.ahead, target_);
}

bool BlockStore::opens_next() const {
  if (blocks_unopened_ == 0 || stopping()) return false;
  return options_.only_when_idle || ready_ + opening_ < options_.ahead;
}

bool BlockStore::should_signal() {
  const bool signal = !signalled_ && (wants_lease() || opens_next());
  if (signal) signalled_ = true;
  return signal;
}

BatchSource::Next BlockStore::next(BatchItem* out) {
  if (stopping()) return Next::kEnd;
  std::unique_lock lock(mutex_);
  while (!left_.empty() && left_.front() == 0) {
    blocks_.pop_front();
    left_.pop_front();
  }
  const bool empty = left_.empty();
  if (empty) {
    if (ended_ && holds_nothing()) return Next::kEnd;
    needed_ = true;
  } else {
    const OpenBlock& block = blocks_.front();
    uint32_t& left = left_.front();
    const auto batch = static_cast<uint8_t>(std::countr_zero(left));
    left &= left - 1;
    --ready_;
    ++unfinished_;
    ++handed_out_;
    out->id = BatchId{block.lease.id, batch, static_cast<uint8_t>(block.lease.batches)};
    out->evaluate = block.evaluate;
    out->geometry = block.geometry;
    out->lr_scale = block.lr_scale * options_.lr_schedule.factor(block.first_batch + batch);
    out->reader = block.reader;
    out->step = block.steps.empty() ? nullptr : block.steps[batch];
  }
  const bool signal = should_signal();
  lock.unlock();
  if (signal && changed_) changed_();
  return empty ? Next::kWait : Next::kItem;
}

// A batch in hand is done with; `refused`: nothing of it is applied.
void BlockStore::finish(bool evaluate, const BatchId& id, bool refused) {
  --unfinished_;
  const auto held = held_.find({evaluate, id.block});
  if (held == held_.end()) return;
  if (refused)
    held->second.todo &= ~(1U << id.batch);
  else
    held->second.block.applied |= 1U << id.batch;
  if ((held->second.todo & ~held->second.block.applied) == 0) held_.erase(held);
}

template <typename F>
void BlockStore::finished_one(const F& change) {
  std::unique_lock lock(mutex_);
  change();
  const bool signal = should_signal() || quiet() || !finished_.refused.empty();
  lock.unlock();
  if (signal && changed_) changed_();
}

void BlockStore::applied(const BatchId& id) {
  finished_one([&] {
    finished_.applied.push_back(id);
    finish(false, id, false);
  });
}

void BlockStore::evaluated(EvalReport report) {
  finished_one([&] {
    finish(true, report.id, false);
    finished_.evaluated.push_back(std::move(report));
  });
}

void BlockStore::refused(const BatchId& id, std::string reason) {
  finished_one([&] {
    finished_.refused.push_back({id, std::move(reason)});
    finish(false, id, true);
  });
}

void BlockStore::failed(const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_.is_ok()) failure_ = status;
  }
  stop();
  if (changed_) changed_();
}

bool BlockStore::begin_lease() {
  const std::lock_guard lock(mutex_);
  signalled_ = false;
  if (!wants_lease()) return false;
  leasing_ = true;
  return true;
}

bool BlockStore::begin_telling() {
  const std::lock_guard lock(mutex_);
  if (leasing_ || stopping()) return false;
  leasing_ = true;
  return true;
}

void BlockStore::lease_over() {
  const std::lock_guard lock(mutex_);
  leasing_ = false;
}

void BlockStore::set_target(uint32_t batches) {
  const std::lock_guard lock(mutex_);
  target_ = batches;
}

void BlockStore::leased(const HeldBlock& block, const BlockLease& lease) {
  const std::lock_guard lock(mutex_);
  ++blocks_unopened_;
  unopened_ += batches_of(lease);
  // A lease may name a block again, with other batches: after a time-out, or when it is suspect.
  const uint32_t mask = batch_mask(lease.batches) & ~lease.skip_mask;
  if (mask == 0) return;
  Held& held = held_[{block.evaluate, block.id}];
  const uint32_t applied = held.block.applied & ~mask;
  held.todo |= mask;
  held.block = block;
  held.block.applied |= applied;
}

bool BlockStore::wants_open() const {
  const std::lock_guard lock(mutex_);
  return opens_next();
}

void BlockStore::opening(const BlockLease& lease) {
  const std::lock_guard lock(mutex_);
  --blocks_unopened_;
  unopened_ -= batches_of(lease);
  ++blocks_opening_;
  opening_ += batches_of(lease);
}

void BlockStore::add(OpenBlock block) {
  {
    const std::lock_guard lock(mutex_);
    const uint32_t mask = batch_mask(block.lease.batches) & ~block.lease.skip_mask;
    const auto n = static_cast<uint32_t>(std::popcount(mask));
    --blocks_opening_;
    opening_ -= n;
    ready_ += n;
    if (n > 0) needed_ = false;
    blocks_.push_back(std::move(block));
    left_.push_back(mask);
  }
  if (wake_) wake_();
}

void BlockStore::end() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  if (wake_) wake_();
}

void BlockStore::stop() {
  stopping_.store(true);
  if (wake_) wake_();
}

FinishedBatches BlockStore::take_finished() {
  const std::lock_guard lock(mutex_);
  return std::exchange(finished_, {});
}

void BlockStore::put_back(FinishedBatches finished) {
  const std::lock_guard lock(mutex_);
  finished_.add(std::move(finished));
}

bool BlockStore::waits_to_tell() const {
  const std::lock_guard lock(mutex_);
  return !finished_.empty() && quiet();
}

bool BlockStore::anything_to_tell() const {
  const std::lock_guard lock(mutex_);
  return !finished_.empty();
}

std::vector<HeldBlock> BlockStore::held() const {
  const std::lock_guard lock(mutex_);
  std::vector<HeldBlock> blocks;
  for (const auto& [key, held] : held_) blocks.push_back(held.block);
  return blocks;
}

uint64_t BlockStore::handed_out() const {
  const std::lock_guard lock(mutex_);
  return handed_out_;
}

bool BlockStore::refused_to_tell() const {
  const std::lock_guard lock(mutex_);
  return !finished_.refused.empty();
}

Status BlockStore::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace flux
