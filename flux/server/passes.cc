// Verbs of the coordinator about passes: open with a geometry, report progress, mark, close.
#include "flux/server/server.h"

namespace flux {

Status Server::open_pass(uint32_t pass, uint64_t geometry) {
  for (const ShardId owned : owned_) {
    Shard& shard = *shards_[owned];
    const std::lock_guard lock(shard.mutex);
    FLUX_RETURN_IF_ERROR(shard.replica.open_pass(pass, geometry));
  }
  return Status::ok();
}

void Server::close_below(uint32_t pass) {
  change_shards([&](Shard* shard, Replies*) { shard->replica.close_below(pass); });
}

std::vector<uint32_t> Server::marked_by_all(const BlockId& section, uint32_t blocks) const {
  std::vector<uint32_t> all(blocks, ~0U);
  for (const ShardId owned : owned_) {
    Shard& shard = *shards_[owned];
    const std::lock_guard lock(shard.mutex);
    BlockId id = section;
    for (id.block = 0; id.block < blocks; ++id.block)
      all[id.block] &= shard.replica.ledger().marked(id);
  }
  return all;
}

std::vector<uint32_t> Server::marked_by_any(const BlockId& section, uint32_t blocks) const {
  std::vector<uint32_t> any(blocks, 0);
  for (const ShardId owned : owned_) {
    Shard& shard = *shards_[owned];
    const std::lock_guard lock(shard.mutex);
    BlockId id = section;
    for (id.block = 0; id.block < blocks; ++id.block)
      any[id.block] |= shard.replica.ledger().marked(id);
  }
  return any;
}

namespace {

Status other_verdict(ShardId shard, const BatchId& id, Verdict found, Verdict wanted) {
  return error(Code::kStale, "shard {}: {} is {} already, it cannot become {}", shard,
               to_string(id), verdict_name(found), verdict_name(wanted));
}

// Whether the shard may be given the verdict: it has none, or this one.
Status check_mark(const ShardReplica& replica, const PushClaim& claim, bool* has_it) {
  const ShardAnswer judged = replica.judge(claim, replica.epoch());
  const BatchId& id = claim.ids.front();
  *has_it = judged.answer == Answer::kDuplicate;
  if (judged.answer == Answer::kApplied) return Status::ok();
  if (judged.answer != Answer::kDuplicate)
    return error(Code::kStale, "shard {} refused to mark {}: {}", replica.shard(), to_string(id),
                 answer_name(judged.answer));
  const Verdict found = replica.ledger().find(id).value_or(claim.verdict);
  // A worker that died in the midst of a push leaves the batch applied on some shards: that stands.
  const bool fits = found == claim.verdict || found == Verdict::kApplied;
  return fits ? Status::ok() : other_verdict(replica.shard(), id, found, claim.verdict);
}

}  // namespace

Status Server::mark(uint64_t geometry, std::span<const BatchId> ids, Verdict verdict) {
  if (verdict == Verdict::kApplied || static_cast<uint32_t>(verdict) >= kVerdicts)
    return invalid("mark: only a push makes a batch applied");
  PushClaim claim{options_.incarnation, geometry, {}, verdict};
  Status status;
  const auto mark_shard = [&](Shard* shard, bool write) {
    for (size_t i = 0; i < ids.size() && status.is_ok(); ++i) {
      claim.ids = {ids[i]};
      bool has_it = false;
      status = check_mark(shard->replica, claim, &has_it);
      if (status.is_ok() && write && !has_it) shard->replica.commit(claim, 0);
    }
  };
  // First everybody is asked, so that a conflict leaves no half-marked batch behind.
  for (const ShardId owned : owned_) {
    const std::lock_guard lock(shards_[owned]->mutex);
    mark_shard(shards_[owned].get(), false);
  }
  if (status.is_ok()) change_shards([&](Shard* shard, Replies*) { mark_shard(shard, true); });
  return status;
}

}  // namespace flux
