#include "flux/coordinator/coordinator.h"

#include <utility>

#include "flux/base/executor.h"

namespace flux {

Coordinator::Coordinator(uint32_t shards, ShardEpoch epoch) {
  route_.server.assign(shards, 0);
  route_.epoch.assign(shards, epoch);
}

void Coordinator::begin_section(const BlockId& section, std::vector<uint8_t> batches,
                                std::vector<uint32_t> order,
                                std::span<const uint32_t> marked_by_all, bool safe) {
  const std::lock_guard lock(mutex_);
  queue_.emplace(section, std::move(batches), std::move(order));
  queue_->recompute(marked_by_all, safe);
}

void Coordinator::stop_leasing() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
}

LeaseReply Coordinator::lease(WorkerId worker) {
  const std::lock_guard lock(mutex_);
  LeaseReply reply;
  if (!stopping_ && queue_ && queue_->lease(worker, steady_now_ns(), &reply.lease))
    reply.kind = LeaseReply::Kind::kBlock;
  return reply;
}

void Coordinator::batch_applied(const BatchId& id) {
  const std::lock_guard lock(mutex_);
  if (queue_) queue_->batch_applied(id, steady_now_ns());
}

ShardRoute Coordinator::route() {
  const std::lock_guard lock(mutex_);
  return route_;
}

bool Coordinator::section_applied() const {
  const std::lock_guard lock(mutex_);
  return queue_ && queue_->all_applied();
}

Coordinator::Counts Coordinator::counts() const {
  const std::lock_guard lock(mutex_);
  if (!queue_) return {};
  return {queue_->todo(), queue_->pending(), queue_->applied(), queue_->done()};
}

}  // namespace flux
