// Are the rows of backups those of their primaries, bit by bit?
//
// The stream hash proves that both got the same operations, not that they made the same rows of
// them. So after a pass is closed, and after a shard was saved whole, the primary hashes its rows
// (order-free) inside the lock, at whatever operation it has then, and sends that hash after the
// operation; the backup compares when it is at the same one. One shard at a time and at most one a
// tick: a shard is held up for as long as it takes to read its rows once, the others are not. A
// backup that is past that operation already compares nothing: the shard's turn comes again.
// A backup that differs is dropped, said aloud and counted, and copied anew.
#include "flux/server/server.h"

namespace flux {

uint64_t Server::content_of(const ShardSlot& slot) const {
  uint64_t sum = 0;
  for (size_t t = 0; t < slot.rows.tables.size(); ++t)
    sum += hash_pair(slot.rows.tables[t].content_hash(), t);
  if (slot.rows.dense) sum += hash_pair(slot.rows.dense->content_hash(), slot.replica.shard());
  return sum;
}

void Server::compare_soon(std::span<const ShardId> shards) {
  const std::lock_guard lock(mutex_);
  to_compare_.insert(shards.begin(), shards.end());
}

void Server::compare_one() {
  ShardId id = 0;
  {
    const std::lock_guard lock(mutex_);
    if (comparing_ || to_compare_.empty()) return;
    id = *to_compare_.begin();
    to_compare_.erase(to_compare_.begin());
    comparing_ = true;
  }
  ReplicateRequest request;
  request.kind = OpKind::kCompare;
  request.push.claim.incarnation = options_.incarnation;
  Outbox outbox(&replicator_);
  {
    ShardSlot& slot = *slots_[id];
    const std::lock_guard lock(slot.mutex);
    const bool leads =
        slot.replica.role() == ReplicaRole::kPrimary && slot.complete && !slot.superseded;
    if (leads && slot.backup.peer) {
      request.content = content_of(slot);
      outbox.add(&slot.backup, true, id, slot.replica.epoch(), slot.replica.op(),
                 slot.replica.stream_hash(), 0);
    }
  }
  const ReceiptPtr receipt = replicator_.send(&outbox, request);
  answer_when_replicated(receipt, [weak = weak_from_this()](const Status&) {
    const auto self = weak.lock();
    if (!self) return;
    const std::lock_guard lock(self->mutex_);
    self->comparing_ = false;
  });
}

FollowAnswer Server::compare_here(ShardSlot* slot, uint64_t content) {
  const uint64_t mine = content_of(*slot);
  compared_.fetch_add(1, std::memory_order_relaxed);
  if (mine == content) return FollowAnswer::kHave;
  diverge(slot,
          fmt::format("after operation {} its rows have the hash {:016x}, those of the primary "
                      "{:016x}",
                      slot->replica.op(), mine, content));
  return FollowAnswer::kNotFollower;
}

}  // namespace flux
