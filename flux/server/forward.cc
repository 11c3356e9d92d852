#include "flux/server/forward.h"

#include <algorithm>

#include "flux/base/check.h"
#include "flux/server/replicator.h"

namespace flux {

void Forward::release() {
  receipts.clear();
  shards.clear();
  epochs.clear();
  ops.clear();
  hashes.clear();
  links.clear();
  as_backup.clear();
  request.push.memory.reset();
  bind();
}

void Forward::bind() {
  request.push.shards = shards;
  request.push.epochs = epochs;
  request.push.tables = tables;
  request.push.dense_parts = dense_parts;
  request.ops = ops;
  request.hashes = hashes;
}

void Outbox::add(Follower* to, bool is_backup, ShardId shard, ShardEpoch epoch, uint64_t op,
                 uint64_t hash, uint64_t bytes) {
  // Learners answer late, while a copy is on its way: nobody waits for a backup because of them.
  const auto at = std::find_if(items_.begin(), items_.end(), [&](const Item& item) {
    return item.forward->peer == to->peer && item.forward->to_backup == is_backup;
  });
  Forward* forward = nullptr;
  if (at != items_.end()) {
    forward = at->forward.get();
  } else {
    ForwardPtr made = replicator_->begin(to->peer);
    // Nobody else knows it, so this waits for nobody, whatever locks are held.
    std::unique_lock lock(made->mutex, std::try_to_lock);
    FLUX_CHECK(lock.owns_lock(), "a new forward is free");
    {
      const std::lock_guard peer_lock(to->peer->mutex);
      made->number = ++to->peer->last;
      to->peer->open.emplace(made->number, made);
    }
    forward = made.get();
    items_.push_back({std::move(made), std::move(lock)});
  }
  forward->to_backup = is_backup;
  forward->bytes += bytes;
  forward->shards.push_back(shard);
  forward->epochs.push_back(epoch);
  forward->ops.push_back(op);
  forward->hashes.push_back(hash);
  forward->links.push_back(to->link);
  forward->as_backup.push_back(is_backup ? 1 : 0);
  to->last = forward->number;
}

void Outbox::wait_for_head(const Follower& backup, ShardId shard) {
  if (backup.last == 0) return;  // both began alike, and nothing has happened since
  heads_.emplace_back(shard, backup.link);
  const auto wait = std::make_pair(backup.peer, backup.last);
  if (std::find(waits_.begin(), waits_.end(), wait) == waits_.end()) waits_.push_back(wait);
}

}  // namespace flux
