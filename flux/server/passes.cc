// Verbs of the coordinator about passes: open with a geometry, report progress, mark, close. What
// changes shards is an operation of their logs, and is answered when it is replicated.
#include "flux/base/kill_point.h"
#include "flux/server/pour_batch.h"
#include "flux/server/server.h"

namespace flux {

Status Server::check_primary(const ShardSlot& slot, ShardEpoch epoch, bool changes,
                             TimeNs now) const {
  const ShardReplica& replica = slot.replica;
  if (!is_serving(slot, now) || replica.epoch() != epoch)
    return error(Code::kStale, "shard {}: not the primary under epoch {}.{} (it is {} under {}.{})",
                 replica.shard(), epoch.term, epoch.n, role_name(replica.role()),
                 replica.epoch().term, replica.epoch().n);
  if (changes && replica.sealed())
    return error(Code::kUnavailable, "shard {} is sealed", replica.shard());
  return Status::ok();
}

Status Server::check_call(const AdminCall& call, bool changes) const {
  if (call.shards.size() != call.epochs.size())
    return invalid("{} shards with {} epochs", call.shards.size(), call.epochs.size());
  if (closed_) return error(Code::kStale, "this job is closed here");
  const TimeNs now = replicator_.now_ns();
  for (size_t i = 0; i < call.shards.size(); ++i) {
    if (call.shards[i] >= slots_.size())
      return invalid("shard {} of a job that has {}", call.shards[i], slots_.size());
    if (i > 0 && call.shards[i - 1] >= call.shards[i])
      return invalid("shards must rise; {} follows {}", call.shards[i], call.shards[i - 1]);
    const ShardSlot& slot = *slots_[call.shards[i]];
    const std::lock_guard lock(slot.mutex);
    FLUX_RETURN_IF_ERROR(check_primary(slot, call.epochs[i], changes, now));
  }
  return Status::ok();
}

void Server::answer_when_replicated(const ReceiptPtr& receipt, Done done) {
  if (!receipt) return done(Status::ok());
  replicator_.receipts().when_settled(receipt, [done = std::move(done)](const Status& status) {
    done(status.is_ok() ? status
                        : error(Code::kUnavailable,
                                "done, but not known to be replicated: ask "
                                "again"));
  });
  if (Receipts::is_settled(receipt)) return;
  const std::lock_guard lock(mutex_);
  admin_waits_.push_back({receipt, replicator_.now_ns() + options_.admin_deadline_ns});
}

template <typename Change>
bool Server::change_logs(const AdminCall& call, ReplicateRequest request, const Change& change,
                         Done done) {
  Status status = check_call(call, true);
  if (!status.is_ok()) return done(status), false;
  const TimeNs now = replicator_.now_ns();
  request.push.claim.incarnation = options_.incarnation;
  Outbox outbox(&replicator_);
  for (size_t i = 0; i < call.shards.size() && status.is_ok(); ++i) {
    ShardSlot& slot = *slots_[call.shards[i]];
    const std::lock_guard lock(slot.mutex);
    status = check_primary(slot, call.epochs[i], true, now);
    if (!status.is_ok()) break;
    const uint64_t before = slot.replica.op();
    status = change(&slot.replica);
    if (slot.replica.op() != before)
      forward_last(&slot, 0, &outbox);
    else if (status.is_ok() && slot.backup.peer)
      outbox.wait_for_head(slot.backup, call.shards[i]);
  }
  const ReceiptPtr receipt = replicator_.send(&outbox, request);
  if (!status.is_ok()) return done(status), true;
  answer_when_replicated(receipt, std::move(done));
  return true;
}

void Server::open_pass(const AdminCall& call, uint32_t pass, uint64_t geometry, Done done) {
  if (geometry == 0) return done(invalid("pass {}: a geometry's hash is never 0", pass));
  kill_point(KillPoint::kOpenPass);
  ReplicateRequest request;
  request.kind = OpKind::kOpenPass;
  request.pass = pass;
  request.geometry = geometry;
  change_logs(
      call, request, [&](ShardReplica* replica) { return replica->open_pass(pass, geometry); },
      std::move(done));
}

void Server::close_below(const AdminCall& call, uint32_t pass, Done done) {
  kill_point(KillPoint::kCloseBelow);
  ReplicateRequest request;
  request.kind = OpKind::kClosePass;
  request.pass = pass;
  const bool changed = change_logs(
      call, request,
      [&](ShardReplica* replica) {
        replica->close_below(pass);
        return Status::ok();
      },
      std::move(done));
  // What waited for batches of a closed pass waits no more.
  if (changed) change_shards(call.shards, [](ShardSlot*, Replies*) {});
  if (changed) compare_soon(call.shards);
}

Result<std::vector<uint32_t>> Server::marked(const AdminCall& call, const BlockId& section,
                                             uint32_t blocks, bool any) const {
  return marked_now(call, section, blocks, any, nullptr);
}

void Server::marked(const AdminCall& call, const BlockId& section, uint32_t blocks, bool any,
                    std::function<void(Result<std::vector<uint32_t>>)> done) {
  Outbox heads(&replicator_);
  auto masks = marked_now(call, section, blocks, any, &heads);
  const ReceiptPtr receipt = replicator_.send(&heads, {});
  if (!masks.is_ok()) return done(masks.status());
  answer_when_replicated(
      receipt, [masks = std::move(masks).value(), done = std::move(done)](const Status& status) {
        if (status.is_ok())
          done(masks);
        else
          done(status);
      });
}

Result<std::vector<uint32_t>> Server::marked_now(const AdminCall& call, const BlockId& section,
                                                 uint32_t blocks, bool any, Outbox* heads) const {
  if (blocks > kBlocksPerSectionMax)
    return invalid("{} blocks in a section, at most {} are possible", blocks, kBlocksPerSectionMax);
  FLUX_RETURN_IF_ERROR(check_call(call, false));
  const TimeNs now = replicator_.now_ns();
  std::vector<uint32_t> masks(blocks, any ? 0 : ~0U);
  for (size_t i = 0; i < call.shards.size(); ++i) {
    const ShardSlot& slot = *slots_[call.shards[i]];
    const std::lock_guard lock(slot.mutex);
    FLUX_RETURN_IF_ERROR(check_primary(slot, call.epochs[i], false, now));
    BlockId id = section;
    for (id.block = 0; id.block < blocks; ++id.block) {
      const uint32_t mask = slot.replica.ledger().marked(id);
      masks[id.block] = any ? masks[id.block] | mask : masks[id.block] & mask;
    }
    if (heads != nullptr && slot.backup.peer) heads->wait_for_head(slot.backup, call.shards[i]);
  }
  return masks;
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
  if (judged.answer == Answer::kNotServing)
    return error(Code::kUnavailable, "shard {} is not served here", replica.shard());
  if (judged.answer != Answer::kDuplicate)
    return error(Code::kStale, "shard {} refused to mark {}: {}", replica.shard(), to_string(id),
                 answer_name(judged.answer));
  const Verdict found = replica.ledger().find(id).value_or(claim.verdict);
  // A worker that died in the midst of a push leaves the batch applied on some shards: that stands.
  const bool fits = found == claim.verdict || found == Verdict::kApplied;
  return fits ? Status::ok() : other_verdict(replica.shard(), id, found, claim.verdict);
}

}  // namespace

Status Server::check_marks(const AdminCall& call, PushClaim claim,
                           std::span<const BatchId> ids) const {
  for (const ShardId id : call.shards) {
    const std::lock_guard lock(slots_[id]->mutex);
    for (const BatchId& batch : ids) {
      claim.ids = {batch};
      bool has_it = false;
      FLUX_RETURN_IF_ERROR(check_mark(slots_[id]->replica, claim, &has_it));
    }
  }
  return Status::ok();
}

void Server::mark(const AdminCall& call, uint64_t geometry, std::span<const BatchId> ids,
                  Verdict verdict, Done done) {
  if (verdict == Verdict::kApplied || static_cast<uint32_t>(verdict) >= kVerdicts)
    return done(invalid("mark: only a push makes a batch applied"));
  kill_point(KillPoint::kMark);
  PushClaim claim{options_.incarnation, geometry, {}, verdict};
  // First everybody is asked, so that a conflict leaves no half-marked batch behind.
  Status status = check_call(call, true);
  if (status.is_ok()) status = check_marks(call, claim, ids);
  if (!status.is_ok()) return done(status);
  // One operation for each batch: all of them must be replicated.
  const ReceiptPtr all = replicator_.receipts().make();
  const auto refused = std::make_shared<Status>();  // what is refused is so before this returns
  for (const BatchId& batch : ids) {
    ReplicateRequest request;
    request.push.claim = claim;
    request.push.claim.ids = {batch};
    all->wait_more();
    change_logs(
        call, request,
        [&](ShardReplica* replica) {
          bool has_it = false;
          FLUX_RETURN_IF_ERROR(check_mark(*replica, request.push.claim, &has_it));
          if (!has_it) replica->commit(request.push.claim, 0);
          return Status::ok();
        },
        [this, all, refused](const Status& one) {
          if (one.is_ok()) return replicator_.receipts().arrived(all);
          if (one.code() != Code::kUnavailable) *refused = one;
          replicator_.receipts().give_up(all);
        });
  }
  change_shards(call.shards, [](ShardSlot*, Replies*) {});
  replicator_.receipts().arrived(all);
  if (!refused->is_ok()) return done(*refused);
  answer_when_replicated(all, std::move(done));
}

}  // namespace flux
