// Who is what: assign, seal, holdings, and what followers say about epochs.
#include <algorithm>

#include "flux/base/kill_point.h"
#include "flux/server/pour_batch.h"
#include "flux/server/server.h"

namespace flux {

// What follows from changes of roles, done when no lock is held.
struct Server::Changes {
  explicit Changes(Replicator* replicator) : probes(replicator) {}
  Outbox probes;
  std::vector<Replicator::Cut> cuts;
  Replies answers;
  Ended ended;
};

ShardState Server::state_of(const ShardSlot& slot) const {
  ShardState state;
  state.shard = slot.replica.shard();
  state.epoch = slot.replica.epoch();
  state.role = slot.replica.role();
  state.sealed = slot.replica.sealed();
  state.complete = slot.complete;
  state.op = slot.replica.op();
  state.stream_hash = slot.replica.stream_hash();
  if (!slot.backup.peer) return state;
  state.replicated = slot.acked_op();
  state.backup = slot.backup.peer->id;
  return state;
}

ShardState Server::state(ShardId shard) const {
  FLUX_CHECK(shard < slots_.size(), "shard {} of {}", shard, slots_.size());
  const std::lock_guard lock(slots_[shard]->mutex);
  return state_of(*slots_[shard]);
}

bool Server::may_take(const ShardSlot& slot, const ShardAssignment& wish) const {
  const ShardReplica& replica = slot.replica;
  if (wish.epoch < replica.epoch()) return false;
  const bool newer = wish.epoch > replica.epoch();
  if (wish.role == ReplicaRole::kNone) {
    const bool member = slot.complete && (replica.role() == ReplicaRole::kPrimary ||
                                          replica.role() == ReplicaRole::kBackup);
    return newer || !member;
  }
  if (!slot.complete || (wish.at_op != kAnyOp && wish.at_op != replica.op())) return false;
  if (wish.role == ReplicaRole::kPrimary && wish.backup != kNoServer && wish.backup == self())
    return false;
  // What was loaded waits for its role under the epoch of the load.
  return newer || slot.loaded != 0;
}

void Server::lose_followers(ShardSlot* slot, Changes* changes) {
  if (slot->backup.peer)
    changes->cuts.push_back({slot->backup.peer, slot->replica.shard(), slot->backup.link});
  slot->backup = Follower();
  slot->learner = Follower();
  slot->set_backup_link(0);
}

void Server::set_backup(ShardSlot* slot, const PeerPtr& peer, Changes* changes) {
  const ShardId id = slot->replica.shard();
  if (slot->backup.peer != peer) {
    const Follower learner = slot->learner;
    lose_followers(slot, changes);
    // One that has followed as a learner goes on as it is; it has to say so under the new epoch.
    slot->backup = learner.peer == peer ? learner : Follower{peer, replicator_.new_link(), 0};
    slot->set_backup_link(slot->backup.link);
  }
  slot->learner = Follower();
  slot->heard_ns.store(replicator_.now_ns(), std::memory_order_relaxed);
  changes->probes.add(&slot->backup, true, id, slot->replica.epoch(), slot->replica.op(),
                      slot->replica.stream_hash(), 0);
}

void Server::take_role(ShardSlot* slot, const ShardAssignment& wish, Changes* changes) {
  const bool promoted =
      wish.role == ReplicaRole::kPrimary && slot->replica.role() != ReplicaRole::kPrimary;
  if (promoted) kill_point(KillPoint::kPromote);
  if (wish.epoch > slot->replica.epoch()) slot->replica.set_epoch(wish.epoch);
  for (SyncPour::Reply& reply : slot->reservoir.clear(slot->replica, Answer::kNotServing))
    changes->answers.push_back(std::move(reply));
  slot->superseded = false;
  slot->loaded = 0;
  if (wish.role == ReplicaRole::kNone) slot->installing.reset();
  if (wish.role != ReplicaRole::kPrimary) lose_followers(slot, changes);
  if (wish.role == ReplicaRole::kNone) drop_replica(slot);
  slot->replica.set_role(wish.role);
  slot->primary = kNoServer;
}

void Server::assign_one(const ShardAssignment& wish, const PeerPtr& backup, Changes* changes) {
  ShardSlot& slot = *slots_[wish.shard];
  const std::lock_guard lock(slot.mutex);
  if (!may_take(slot, wish)) return;
  take_role(&slot, wish, changes);
  if (wish.role == ReplicaRole::kPrimary) {
    if (backup)
      set_backup(&slot, backup, changes);
    else
      lose_followers(&slot, changes);
  }
  drain(&slot, &changes->ended);  // what is older than the new epoch is refused now
}

void Server::settle_changes(Changes* changes) {
  if (changes->probes.has_forwards()) {
    ReplicateRequest probe;
    probe.kind = OpKind::kProbe;
    probe.push.claim.incarnation = options_.incarnation;
    replicator_.send(&changes->probes, probe);
  }
  replicator_.cut(changes->cuts);
  settle_all(changes->answers, nullptr);
  tell_ended(&changes->ended);
}

Result<std::vector<ShardState>> Server::assign(const Assignments& places) {
  for (size_t i = 0; i < places.shards.size(); ++i) {
    const ShardAssignment& wish = places.shards[i];
    if (wish.shard >= slots_.size())
      return invalid("shard {} of a job that has {}", wish.shard, slots_.size());
    if (i > 0 && places.shards[i - 1].shard >= wish.shard)
      return invalid("shards must rise; {} follows {}", wish.shard, places.shards[i - 1].shard);
    if (static_cast<uint32_t>(wish.role) > static_cast<uint32_t>(ReplicaRole::kLearner))
      return invalid("shard {}: there is no role {}", wish.shard, static_cast<uint32_t>(wish.role));
  }
  if (closed_) return error(Code::kStale, "this job is closed here");
  kill_point(KillPoint::kAssign);
  Changes changes(&replicator_);
  for (const ShardAssignment& wish : places.shards) {
    PeerPtr backup;
    if (wish.role == ReplicaRole::kPrimary && wish.backup != kNoServer) {
      const bool known = wish.backup < places.servers.size();
      backup = replicator_.peer(wish.backup, known ? places.servers[wish.backup] : std::string());
    }
    assign_one(wish, backup, &changes);
  }
  settle_changes(&changes);
  std::vector<ShardState> states;
  for (const ShardAssignment& wish : places.shards) states.push_back(state(wish.shard));
  return states;
}

Result<std::vector<ShardState>> Server::seal(const AdminCall& call) {
  FLUX_RETURN_IF_ERROR(check_call(call, false));
  kill_point(KillPoint::kSeal);
  const TimeNs now = replicator_.now_ns();
  std::vector<ShardState> states;
  Replies answers;
  Status status;
  for (size_t i = 0; i < call.shards.size() && status.is_ok(); ++i) {
    ShardSlot& slot = *slots_[call.shards[i]];
    const std::lock_guard lock(slot.mutex);
    status = check_primary(slot, call.epochs[i], false, now);
    if (!status.is_ok()) break;
    slot.replica.seal();
    for (SyncPour::Reply& reply : slot.reservoir.clear(slot.replica, Answer::kNotServing))
      answers.push_back(std::move(reply));
    states.push_back(state_of(slot));
  }
  settle_all(answers, nullptr);
  if (!status.is_ok()) return status;
  return states;
}

Holdings Server::holdings() const {
  Holdings out;
  out.incarnation = options_.incarnation;
  out.self = self();
  bool first = true;
  for (const auto& slot : slots_) {
    const std::lock_guard lock(slot->mutex);
    if (slot->replica.role() == ReplicaRole::kNone) continue;
    out.shards.push_back(state_of(*slot));
    if (!slot->complete) continue;
    for (const auto& [pass, geometry] : slot->replica.passes()) out.passes[pass] = geometry;
    const uint32_t below = slot->replica.ledger().watermark();
    out.closed_below = first ? below : std::min(out.closed_below, below);
    first = false;
  }
  return out;
}

bool Server::is_live(ShardId shard, uint32_t link, ShardEpoch* epoch) {
  const ShardSlot& slot = *slots_[shard];
  const std::lock_guard lock(slot.mutex);
  if (slot.replica.role() != ReplicaRole::kPrimary || closed_) return false;
  *epoch = slot.replica.epoch();
  return (slot.backup.peer && slot.backup.link == link) ||
         (slot.learner.peer && slot.learner.link == link);
}

bool Server::acknowledge(ShardId shard, uint32_t link, uint64_t op, TimeNs now) {
  ShardSlot& slot = *slots_[shard];
  const uint64_t mine = (uint64_t{link} << ShardSlot::kOpBits) | op;
  uint64_t known = slot.acked.load();
  do {
    if (known >> ShardSlot::kOpBits != link) return false;
    if (known >= mine) break;
  } while (!slot.acked.compare_exchange_weak(known, mine));
  slot.heard_ns.store(now, std::memory_order_relaxed);
  return true;
}

void Server::superseded(ShardId shard, uint32_t link, ShardEpoch later) {
  Changes changes(&replicator_);
  {
    ShardSlot& slot = *slots_[shard];
    const std::lock_guard lock(slot.mutex);
    const bool mine = (slot.backup.peer && slot.backup.link == link) ||
                      (slot.learner.peer && slot.learner.link == link);
    if (slot.replica.role() != ReplicaRole::kPrimary || !mine || later <= slot.replica.epoch())
      return;
    slot.superseded = true;
    lose_followers(&slot, &changes);
    changes.answers = slot.reservoir.clear(slot.replica, Answer::kNotServing);
  }
  say(fmt::format("shard {}: epoch {}.{} has begun elsewhere; this primary steps down", shard,
                  later.term, later.n));
  settle_changes(&changes);
}

}  // namespace flux
