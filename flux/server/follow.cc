// The verb replicate: operations of a primary, applied here in its order and compared.
//
// What comes too early is held back with its memory; what does not fit (another stream hash, a
// claim that this ledger does not take) means that two histories differ: the replica is dropped,
// named, and said aloud, and only a new copy brings it back.
#include <algorithm>

#include "flux/base/kill_point.h"
#include "flux/server/server.h"

namespace flux {
namespace {

constexpr size_t kHeldMax = 4096;  // operations of one shard that wait

}  // namespace

Status Server::check_forward(const ReplicateRequest& request) const {
  const PushRequest& push = request.push;
  if (push.claim.incarnation != options_.incarnation)
    return error(Code::kStale, "a forward of another incarnation");
  if (closed_) return error(Code::kStale, "this job is closed here");
  const size_t n = push.shards.size();
  if (push.epochs.size() != n || request.ops.size() != n || request.hashes.size() != n)
    return invalid("a forward for {} shards whose lists do not fit", n);
  if (static_cast<uint32_t>(request.kind) < 1 || static_cast<uint32_t>(request.kind) > kOpKinds)
    return invalid("a forward of kind {}", static_cast<uint32_t>(request.kind));
  if (request.kind == OpKind::kOpenPass && request.geometry == 0)
    return invalid("pass {}: a geometry's hash is never 0", request.pass);
  if (request.kind == OpKind::kCompare && n != 1)
    return invalid("a comparison of {} shards; one at a time", n);
  for (const ShardId id : push.shards) {
    if (id >= slots_.size()) return invalid("a forward for shard {} of {}", id, slots_.size());
    if (request.kind == OpKind::kPush && !gradient_is_good(push, id))
      return invalid("a forward for shard {} with bad gradients", id);
  }
  return Status::ok();
}

void Server::replicate(const ReplicateRequest& request,
                       std::function<void(const ReplicateReply&)> done) {
  ReplicateReply reply;
  reply.status = check_forward(request);
  if (!reply.status.is_ok()) return done(reply);
  std::shared_ptr<Incoming> incoming;  // if anything must wait
  Ended ended;
  const PushRequest& push = request.push;
  const TimeNs now = replicator_.now_ns();
  for (size_t i = 0; i < push.shards.size(); ++i) {
    if (request.kind == OpKind::kPush) prefetch_ahead(push.keys, push.shards, i, phase_of(push));
    ShardSlot& slot = *slots_[push.shards[i]];
    const uint64_t hash = request.kind == OpKind::kPush ? payload_hash(push, push.shards[i]) : 0;
    const std::lock_guard lock(slot.mutex);
    const FollowAnswer answer = follow(&slot, request, i, &hash);
    if (answer == FollowAnswer::kHave || answer == FollowAnswer::kHold) {
      slot.primary = request.from;
      slot.primary_ns = now;
    }
    if (answer == FollowAnswer::kHold) {
      if (!incoming) incoming = std::make_shared<Incoming>(request, done);
      if (hold(&slot, incoming, i)) continue;
    }
    if (answer != FollowAnswer::kHave)
      reply.refused.push_back({push.shards[i], answer, slot.replica.epoch()});
    if (!slot.held.empty()) drain(&slot, &ended);
  }
  tell_ended(&ended);
  kill_point(KillPoint::kBackupBeforeAck);
  if (!incoming) return done(reply);
  {
    const std::lock_guard lock(incoming->mutex);
    incoming->refused.insert(incoming->refused.end(), reply.refused.begin(), reply.refused.end());
  }
  ended.list.assign(1, incoming);
  tell_ended(&ended);
}

FollowAnswer Server::follow(ShardSlot* slot, const ReplicateRequest& request, size_t i,
                            const uint64_t* hash) {
  const uint64_t op = request.ops[i];
  const ShardEpoch epoch = request.push.epochs[i];
  if (slot->installing && slot->installing->epoch == epoch) return FollowAnswer::kHold;
  if (!slot->complete)
    return epoch < slot->replica.epoch() ? FollowAnswer::kOlderEpoch : FollowAnswer::kNotFollower;
  const FollowAnswer answer = slot->replica.judge_follow(epoch, op);
  if (answer == FollowAnswer::kHave && !slot->replica.agrees(op, request.hashes[i])) {
    diverge(slot, fmt::format("operation {} was another one", op));
    return FollowAnswer::kNotFollower;
  }
  if (answer == FollowAnswer::kHave && request.kind == OpKind::kCompare && slot->replica.op() == op)
    return compare_here(slot, request.content);
  if (answer != FollowAnswer::kApply) return answer;
  if (is_probe(request.kind)) return FollowAnswer::kHold;  // the operation is on its way
  const Status status = apply_forwarded(slot, request, i, hash);
  if (status.is_ok()) return FollowAnswer::kHave;
  diverge(slot, status.message());
  return FollowAnswer::kNotFollower;
}

Status Server::apply_forwarded(ShardSlot* slot, const ReplicateRequest& request, size_t i,
                               const uint64_t* hash) const {
  ShardReplica& replica = slot->replica;
  const uint64_t op = request.ops[i];
  kill_point(KillPoint::kBackupBeforeApply);
  switch (request.kind) {
    case OpKind::kOpenPass:
      FLUX_RETURN_IF_ERROR(replica.open_pass(request.pass, request.geometry));
      break;
    case OpKind::kClosePass:
      replica.close_below(request.pass);
      break;
    default: {
      const Answer judged = replica.judge_forwarded(request.push.claim);
      if (judged != Answer::kApplied)
        return error(Code::kCorrupt, "operation {} would be answered '{}' here", op,
                     answer_name(judged));
      apply_rows(slot, request.push, replica.shard());
      replica.commit(request.push.claim,
                     hash != nullptr ? *hash : payload_hash(request.push, replica.shard()));
    }
  }
  kill_point(KillPoint::kBackupAfterApply);
  if (replica.op() != op || replica.stream_hash() != request.hashes[i])
    return error(Code::kCorrupt, "operation {}: stream hash {:016x} here, {:016x} at the primary",
                 op, replica.stream_hash(), request.hashes[i]);
  return Status::ok();
}

bool Server::hold(ShardSlot* slot, const std::shared_ptr<Incoming>& from, size_t place) {
  if (slot->held.size() >= kHeldMax) return false;
  const uint64_t op = from->ops[place];
  const auto at = std::upper_bound(slot->held.begin(), slot->held.end(), op,
                                   [](uint64_t x, const HeldOp& held) { return x < held.op; });
  from->missing.fetch_add(1, std::memory_order_relaxed);
  slot->held.insert(at, {op, from, place});
  return true;
}

void Server::drain(ShardSlot* slot, Ended* ended) {
  std::vector<HeldOp> left;
  for (HeldOp& next : slot->held) {
    const FollowAnswer answer = follow(slot, next.from->request, next.place, nullptr);
    if (answer == FollowAnswer::kHold) {
      left.push_back(std::move(next));
      continue;
    }
    if (answer != FollowAnswer::kHave) {
      const std::lock_guard lock(next.from->mutex);
      next.from->refused.push_back({slot->replica.shard(), answer, slot->replica.epoch()});
    }
    ended->list.push_back(std::move(next.from));
  }
  slot->held = std::move(left);
}

// A message of which a part was refused is answered at once: what it waits for may come only with
// the refused part of another one, which waits for this one.
void Server::release_held(const std::shared_ptr<Incoming>& from, Ended* ended) {
  {
    const std::lock_guard lock(from->mutex);
    if (from->refused.empty()) return;
  }
  for (const ShardId shard : from->shards) {
    ShardSlot& slot = *slots_[shard];
    const std::lock_guard lock(slot.mutex);
    const auto held = std::find_if(slot.held.begin(), slot.held.end(),
                                   [&](const HeldOp& one) { return one.from == from; });
    if (held == slot.held.end()) continue;
    slot.held.erase(held);
    const std::lock_guard from_lock(from->mutex);
    from->refused.push_back({shard, FollowAnswer::kHold, slot.replica.epoch()});
    ended->list.push_back(from);
  }
}

void Server::tell_ended(Ended* ended) {
  for (size_t i = 0; i < ended->list.size(); ++i) {  // it grows
    const std::shared_ptr<Incoming> from = ended->list[i];
    if (from->missing.fetch_sub(1, std::memory_order_acq_rel) != 1) {
      release_held(from, ended);
      continue;
    }
    ReplicateReply reply;
    reply.refused = std::move(from->refused);
    const auto done = std::move(from->done);
    from->request.push.memory.reset();
    done(reply);
  }
  ended->list.clear();
}

void Server::drop_held() {
  Ended ended;
  for (const auto& slot : slots_) {
    const std::lock_guard lock(slot->mutex);
    for (const HeldOp& one : slot->held) {
      const std::lock_guard from_lock(one.from->mutex);
      one.from->refused.push_back(
          {slot->replica.shard(), FollowAnswer::kNotFollower, slot->replica.epoch()});
      ended.list.push_back(one.from);
    }
    slot->held.clear();
  }
  tell_ended(&ended);
}

void Server::drop_replica(ShardSlot* slot) {
  const ShardId id = slot->replica.shard();
  ShardReplica empty(id, options_.incarnation, slot->replica.epoch());
  empty.set_role(ReplicaRole::kNone);
  slot->replica = std::move(empty);
  slot->rows = ShardRows();
  slot->complete = false;
  slot->superseded = false;
  slot->loaded = 0;
  slot->installed = 0;
  slot->backup = Follower();
  slot->learner = Follower();
  slot->set_backup_link(0);
}

void Server::diverge(ShardSlot* slot, const std::string& what) {
  diverged_.fetch_add(1, std::memory_order_relaxed);
  say(fmt::format("shard {}: this replica differs from its primary and is dropped: {}",
                  slot->replica.shard(), what));
  drop_replica(slot);
}

}  // namespace flux
