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

BlockStore::BlockStore(const BlockStoreOptions& options)
    : options_(options), wake_(options.lanes), queues_(options.by_lane ? options.lanes : 1) {}

void BlockStore::set_wake(uint32_t lane, std::function<void()> wake) {
  wake_[lane] = std::move(wake);
}

void BlockStore::set_changed(std::function<void()> changed) {
  changed_ = std::move(changed);
}

// Nothing in it that a lane could take, now or later.
bool BlockStore::holds_nothing(const Queue& queue) const {
  return queue.ready == 0 && queue.blocks_opening == 0 && queue.blocks_unopened == 0;
}

bool BlockStore::wants_lease(const Queue& queue) const {
  if (queue.leasing || queue.ended || stopping()) return false;
  if (options_.only_when_idle || options_.by_lane)
    return queue.needed && holds_nothing(queue) && queue.unfinished == 0;
  const size_t blocks = queue.blocks.size() + queue.blocks_opening + queue.blocks_unopened;
  return blocks < options_.blocks_max && queue.ready + queue.opening + queue.unopened <
                                             std::max(options_.lanes * options_.ahead, target_);
}

bool BlockStore::wants_open(const Queue& queue) const {
  if (queue.blocks_unopened == 0 || stopping()) return false;
  if (options_.only_when_idle || options_.by_lane) return true;
  return queue.ready + queue.opening < options_.lanes * options_.ahead;
}

bool BlockStore::quiet() const {
  return std::all_of(queues_.begin(), queues_.end(), [this](const Queue& queue) {
    return holds_nothing(queue) && queue.unfinished == 0;
  });
}

bool BlockStore::should_signal(Queue* queue) {
  const bool signal = !queue->signalled && (wants_lease(*queue) || wants_open(*queue));
  if (signal) queue->signalled = true;
  return signal;
}

BatchSource::Next BlockStore::next(uint32_t lane, BatchItem* out) {
  if (stopping()) return Next::kEnd;
  std::unique_lock lock(mutex_);
  Queue& queue = queues_[queue_of(lane)];
  while (!queue.left.empty() && queue.left.front() == 0) {
    queue.blocks.pop_front();
    queue.left.pop_front();
  }
  if (queue.left.empty()) {
    if (queue.ended && holds_nothing(queue)) return Next::kEnd;
    queue.needed = true;
    const bool signal = should_signal(&queue);
    lock.unlock();
    if (signal && changed_) changed_();
    return Next::kWait;
  }
  const OpenBlock& block = queue.blocks.front();
  uint32_t& left = queue.left.front();
  const auto batch = static_cast<uint8_t>(std::countr_zero(left));
  left &= left - 1;
  --queue.ready;
  ++queue.unfinished;
  ++handed_out_;
  out->id = BatchId{block.lease.id, batch, static_cast<uint8_t>(block.lease.batches)};
  out->evaluate = block.evaluate;
  out->geometry = block.geometry;
  out->lr_scale = block.lr_scale * options_.lr_schedule.factor(block.first_batch + batch);
  out->reader = block.reader;
  out->step = block.steps.empty() ? nullptr : block.steps[batch];
  const bool signal = should_signal(&queue);
  lock.unlock();
  if (signal && changed_) changed_();
  return Next::kItem;
}

bool BlockStore::dry() const {
  const std::lock_guard lock(mutex_);
  return std::all_of(queues_.begin(), queues_.end(),
                     [this](const Queue& queue) { return holds_nothing(queue); });
}

// A batch in hand is done with; `refused`: nothing of it is applied.
void BlockStore::finish(bool evaluate, const BatchId& id, bool refused) {
  const auto held = held_.find({evaluate, id.block});
  if (held == held_.end()) return;
  if (refused)
    held->second.todo &= ~(1U << id.batch);
  else
    held->second.block.applied |= 1U << id.batch;
  if ((held->second.todo & ~held->second.block.applied) == 0) held_.erase(held);
}

void BlockStore::applied(uint32_t lane, const BatchId& id) {
  std::unique_lock lock(mutex_);
  finished_.applied.push_back(id);
  finish(false, id, false);
  --queues_[queue_of(lane)].unfinished;
  const bool signal = should_signal(&queues_[queue_of(lane)]) || quiet();
  lock.unlock();
  if (signal && changed_) changed_();
}

void BlockStore::evaluated(uint32_t lane, EvalReport report) {
  std::unique_lock lock(mutex_);
  finish(true, report.id, false);
  finished_.evaluated.push_back(std::move(report));
  --queues_[queue_of(lane)].unfinished;
  const bool signal = should_signal(&queues_[queue_of(lane)]) || quiet();
  lock.unlock();
  if (signal && changed_) changed_();
}

void BlockStore::refused(uint32_t lane, const BatchId& id, std::string reason) {
  {
    const std::lock_guard lock(mutex_);
    finished_.refused.push_back({id, std::move(reason)});
    finish(false, id, true);
    --queues_[queue_of(lane)].unfinished;
  }
  if (changed_) changed_();
}

void BlockStore::failed(uint32_t, const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_.is_ok()) failure_ = status;
  }
  stop();
  if (changed_) changed_();
}

bool BlockStore::begin_lease(uint32_t queue) {
  const std::lock_guard lock(mutex_);
  Queue& q = queues_[queue];
  q.signalled = false;
  if (!wants_lease(q)) return false;
  q.leasing = true;
  return true;
}

bool BlockStore::begin_telling(uint32_t queue) {
  const std::lock_guard lock(mutex_);
  if (queues_[queue].leasing || stopping()) return false;
  queues_[queue].leasing = true;
  return true;
}

void BlockStore::lease_over(uint32_t queue) {
  const std::lock_guard lock(mutex_);
  queues_[queue].leasing = false;
}

void BlockStore::set_target(uint32_t batches) {
  const std::lock_guard lock(mutex_);
  target_ = batches;
}

void BlockStore::leased(uint32_t queue, const HeldBlock& block, const BlockLease& lease) {
  const std::lock_guard lock(mutex_);
  Queue& q = queues_[queue];
  ++q.blocks_unopened;
  q.unopened += batches_of(lease);
  // A lease may name a block again, with other batches: after a time-out, or when it is suspect.
  const uint32_t mask = batch_mask(lease.batches) & ~lease.skip_mask;
  if (mask == 0) return;
  Held& held = held_[{block.evaluate, block.id}];
  const uint32_t applied = held.block.applied & ~mask;
  held.todo |= mask;
  held.block = block;
  held.block.applied |= applied;
}

bool BlockStore::wants_open(uint32_t queue) const {
  const std::lock_guard lock(mutex_);
  return wants_open(queues_[queue]);
}

void BlockStore::opening(uint32_t queue, const BlockLease& lease) {
  const std::lock_guard lock(mutex_);
  Queue& q = queues_[queue];
  --q.blocks_unopened;
  q.unopened -= batches_of(lease);
  ++q.blocks_opening;
  q.opening += batches_of(lease);
}

void BlockStore::add(uint32_t queue, OpenBlock block) {
  {
    const std::lock_guard lock(mutex_);
    Queue& q = queues_[queue];
    const uint32_t mask = batch_mask(block.lease.batches) & ~block.lease.skip_mask;
    const auto n = static_cast<uint32_t>(std::popcount(mask));
    --q.blocks_opening;
    q.opening -= n;
    q.ready += n;
    if (n > 0) q.needed = false;
    q.blocks.push_back(std::move(block));
    q.left.push_back(mask);
  }
  wake_lanes(queue);
}

void BlockStore::end(uint32_t queue) {
  {
    const std::lock_guard lock(mutex_);
    queues_[queue].ended = true;
  }
  wake_lanes(queue);
}

void BlockStore::stop() {
  stopping_.store(true);
  for (const auto& wake : wake_)
    if (wake) wake();
}

void BlockStore::wake_lanes(uint32_t queue) {
  for (uint32_t lane = 0; lane < wake_.size(); ++lane)
    if (wake_[lane] && queue_of(lane) == queue) wake_[lane]();
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
