#include "flux/worker/block_store.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

namespace flux {

BlockStore::BlockStore(const BlockStoreOptions& options)
    : options_(options), wake_(options.lanes), queues_(options.by_lane ? options.lanes : 1) {}

void BlockStore::set_wake(uint32_t lane, std::function<void()> wake) {
  wake_[lane] = std::move(wake);
}

void BlockStore::set_changed(std::function<void()> changed) {
  changed_ = std::move(changed);
}

bool BlockStore::wants_lease(const Queue& queue) const {
  if (queue.leasing || queue.ended || stopping()) return false;
  if (options_.only_when_idle || options_.by_lane)
    return queue.needed && queue.ready == 0 && queue.blocks_opening == 0 && queue.unfinished == 0;
  return queue.ready + queue.opening < options_.lanes * options_.ahead;
}

bool BlockStore::quiet() const {
  return std::all_of(queues_.begin(), queues_.end(), [](const Queue& queue) {
    return queue.ready == 0 && queue.blocks_opening == 0 && queue.unfinished == 0;
  });
}

bool BlockStore::should_signal(Queue* queue) {
  const bool lease = !queue->signalled && wants_lease(*queue);
  if (lease) queue->signalled = true;
  return lease;
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
    if (queue.ended && queue.blocks_opening == 0) return Next::kEnd;
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
  out->id = BatchId{block.lease.id, batch, static_cast<uint8_t>(block.lease.batches)};
  out->evaluate = block.evaluate;
  out->geometry = block.geometry;
  out->lr_scale = block.lr_scale;
  out->reader = block.reader;
  out->step = block.steps.empty() ? nullptr : block.steps[batch];
  const bool signal = should_signal(&queue);
  lock.unlock();
  if (signal && changed_) changed_();
  return Next::kItem;
}

bool BlockStore::dry() const {
  const std::lock_guard lock(mutex_);
  return std::all_of(queues_.begin(), queues_.end(), [](const Queue& queue) {
    return queue.ready == 0 && queue.blocks_opening == 0;
  });
}

void BlockStore::applied(uint32_t lane, const BatchId& id) {
  std::unique_lock lock(mutex_);
  finished_.applied.push_back(id);
  --queues_[queue_of(lane)].unfinished;
  const bool signal = should_signal(&queues_[queue_of(lane)]) || quiet();
  lock.unlock();
  if (signal && changed_) changed_();
}

void BlockStore::evaluated(uint32_t lane, EvalReport report) {
  std::unique_lock lock(mutex_);
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

void BlockStore::lease_over(uint32_t queue) {
  const std::lock_guard lock(mutex_);
  queues_[queue].leasing = false;
}

void BlockStore::opening(uint32_t queue, const BlockLease& lease) {
  const std::lock_guard lock(mutex_);
  Queue& q = queues_[queue];
  ++q.blocks_opening;
  q.opening += static_cast<uint32_t>(std::popcount(batch_mask(lease.batches) & ~lease.skip_mask));
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
  finished_.applied.insert(finished_.applied.end(), finished.applied.begin(),
                           finished.applied.end());
  std::move(finished.evaluated.begin(), finished.evaluated.end(),
            std::back_inserter(finished_.evaluated));
  std::move(finished.refused.begin(), finished.refused.end(),
            std::back_inserter(finished_.refused));
}

bool BlockStore::waits_to_tell() const {
  const std::lock_guard lock(mutex_);
  return !finished_.empty() && quiet();
}

bool BlockStore::anything_to_tell() const {
  const std::lock_guard lock(mutex_);
  return !finished_.empty();
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
