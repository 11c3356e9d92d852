#include "flux/worker/feed.h"

#include <bit>
#include <utility>

namespace flux {
namespace {
constexpr size_t kBatchesAhead = 4;  // per thread
}  // namespace

Feed::Feed(WorkerId worker, CoordinatorPort* coordinator, const Dataset* dataset, uint32_t threads,
           const std::atomic<bool>* stop)
    : worker_(worker),
      coordinator_(coordinator),
      dataset_(dataset),
      threads_(threads),
      stop_(stop) {}

size_t Feed::batches_ready() const {
  size_t ready = 0;
  for (const OpenBlock& block : blocks_) ready += static_cast<size_t>(std::popcount(block.left));
  return ready;
}

bool Feed::take(FeedItem* out) {
  while (!blocks_.empty() && blocks_.front().left == 0) blocks_.pop_front();
  if (blocks_.empty()) return false;
  OpenBlock& block = blocks_.front();
  const auto batch = static_cast<uint8_t>(std::countr_zero(block.left));
  block.left &= block.left - 1;
  out->id = BatchId{block.lease.id, batch, static_cast<uint8_t>(block.lease.batches)};
  out->reader = block.reader;
  return true;
}

void Feed::open_one(std::unique_lock<std::mutex>* lock) {
  const LeaseReply reply = coordinator_->lease(worker_);
  if (reply.kind == LeaseReply::Kind::kEnd) {
    ended_ = true;
    changed_.notify_all();
    return;
  }
  ++opening_;
  lock->unlock();
  auto reader = dataset_->open_block(reply.lease.id.block, reply.lease.id.epoch);
  lock->lock();
  --opening_;
  if (reader.is_ok()) {
    OpenBlock block;
    block.lease = reply.lease;
    block.left = batch_mask(reply.lease.batches) & ~reply.lease.skip_mask;
    block.reader = std::move(reader).value();
    blocks_.push_back(std::move(block));
  } else if (status_.is_ok()) {
    status_ = reader.status();
  }
  changed_.notify_all();
}

bool Feed::next(FeedItem* out) {
  std::unique_lock lock(mutex_);
  while (true) {
    if (!status_.is_ok() || (stop_ != nullptr && stop_->load(std::memory_order_relaxed)))
      return false;
    // Open ahead while few batches are in store, so that one thread reads a block while the others
    // train the one before. A single thread opens a block only when it needs it.
    const bool low = batches_ready() < (threads_ == 1 ? 1 : threads_ * kBatchesAhead);
    if (!ended_ && low && opening_ == 0) {
      open_one(&lock);
      continue;
    }
    if (take(out)) return true;
    if (opening_ > 0) {  // "wait for block": whoever opens it notifies, whatever the outcome
      changed_.wait(lock);
      continue;
    }
    if (ended_) return false;
    open_one(&lock);
  }
}

Status Feed::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

void Feed::fail(const Status& status) {
  const std::lock_guard lock(mutex_);
  if (status_.is_ok()) status_ = status;
  changed_.notify_all();
}

}  // namespace flux
