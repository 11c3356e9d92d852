// The verb push: judge, apply and commit, shard by shard, each inside its lock; then forward.
#include "flux/base/kill_point.h"
#include "flux/server/hinted_keys.h"
#include "flux/server/server.h"

namespace flux {

std::optional<Answer> Server::refuse(const PushRequest& request, ShardId id) const {
  if (id >= slots_.size()) return Answer::kMalformed;
  if (closed_) return Answer::kNotServing;
  if (request.epochs.size() != request.shards.size()) return Answer::kMalformed;
  if (!gradient_is_good(request, id)) return Answer::kMalformed;
  return std::nullopt;
}

void Server::apply_rows(ShardSlot* slot, const PushRequest& request, ShardId id) const {
  if (request.claim.verdict != Verdict::kApplied) return;
  if (slot->rows.dense) {
    if (const float* gradient = dense_of(request, id))
      slot->rows.dense->push(gradient, request.examples, request.lr_scale);
    return;
  }
  const uint32_t begin = request.keys.begin[id];
  const uint32_t n = request.keys.begin[id + 1] - begin;
  const std::vector<uint32_t>& width = widths(phase_of(request), id);
  for_hinted_keys(slot->rows.tables.size(), n, [&](size_t t, size_t at, size_t keys, auto* hints) {
    if (width[t] > 0)
      slot->rows.tables[t].push({request.keys.keys + begin + at, keys},
                                request.tables[t] + row_at(request.keys, t, begin) + at * width[t],
                                request.counts + begin + at, request.lr_scale, hints);
  });
}

// Of a push, in keys: what it asks of this shard.
uint64_t Server::served_by(const PushRequest& request, ShardId id) const {
  if (request.claim.verdict != Verdict::kApplied) return 0;
  if (is_dense(id))
    return dense_of(request, id) == nullptr ? 0 : ShardSlot::keys_of_dense(dense_size(id));
  return request.keys.begin[id + 1] - request.keys.begin[id];
}

void Server::forward_last(ShardSlot* slot, uint64_t bytes, Outbox* outbox) {
  const ShardReplica& replica = slot->replica;
  if (slot->backup.peer)
    outbox->add(&slot->backup, true, replica.shard(), replica.epoch(), replica.op(),
                replica.stream_hash(), bytes);
  if (slot->learner.peer)
    outbox->add(&slot->learner, false, replica.shard(), replica.epoch(), replica.op(),
                replica.stream_hash(), bytes);
}

std::optional<ShardAnswer> Server::push_one(const PushRequest& request, size_t i, TimeNs now,
                                            Outbox* outbox) {
  const ShardId id = request.shards[i];
  if (const auto refused = refuse(request, id)) return ShardAnswer{id, *refused, 0, {}};
  ShardSlot& slot = *slots_[id];
  const uint64_t hash = payload_hash(request, id);
  const std::lock_guard lock(slot.mutex);
  if (outbox == nullptr && (slot.backup.peer || slot.learner.peer)) return std::nullopt;
  if (slot.replica.role() == ReplicaRole::kNone) return ShardAnswer{id, Answer::kNotServing, 0, {}};
  ShardAnswer answer = slot.replica.judge(request.claim, request.epochs[i]);
  const bool has_it = answer.answer == Answer::kApplied || answer.answer == Answer::kDuplicate;
  if (has_it && !is_serving(slot, now)) {
    answer.answer = Answer::kNotServing;
    return answer;
  }
  if (answer.answer == Answer::kDuplicate && slot.backup.peer)
    outbox->wait_for_head(slot.backup, id);
  if (answer.answer != Answer::kApplied) return answer;
  kill_point(KillPoint::kBeforeApply);
  apply_rows(&slot, request, id);
  kill_point(KillPoint::kAfterApply);
  answer.op = slot.replica.commit(request.claim, hash);
  slot.count_served(served_by(request, id));
  kill_point(KillPoint::kAfterCommit);
  if (slot.backup.peer || slot.learner.peer)
    forward_last(&slot, gradient_bytes(request, id), outbox);
  return answer;
}

void Server::count_answers(const PushReply& reply) {
  uint64_t duplicates = 0, refused = 0;
  for (const ShardAnswer& answer : reply.answers) {
    if (answer.answer == Answer::kDuplicate)
      ++duplicates;
    else if (answer.answer != Answer::kApplied)
      ++refused;
  }
  if (duplicates > 0) duplicates_.fetch_add(duplicates, std::memory_order_relaxed);
  if (refused > 0) refused_.fetch_add(refused, std::memory_order_relaxed);
}

void Server::push(const PushRequest& request, std::function<void(const PushReply&)> done) {
  pushes_.fetch_add(1, std::memory_order_relaxed);
  if (request.step != nullptr) return push_sync(request, std::move(done));
  const bool full = replicator_.full();
  const TimeNs now = replicator_.now_ns();
  Outbox outbox(&replicator_);
  PushReply reply;
  reply.answers.resize(request.shards.size());
  const Asked asked{request.keys, request.shards, phase_of(request)};
  // Forwards of one request go out together, so shards with followers are left to this thread.
  const bool alone = request.team == nullptr || request.team->members() == 1;
  std::vector<uint8_t> left(alone ? 0 : request.shards.size());
  for_shards(request.team, asked, [&](size_t i) {
    reply.answers[i] = {request.shards[i], Answer::kNotServing, 0, {}};
    if (full) return;
    if (auto answer = push_one(request, i, now, alone ? &outbox : nullptr))
      reply.answers[i] = std::move(*answer);
    else
      left[i] = 1;
  });
  for (size_t i = 0; i < left.size(); ++i)
    if (left[i] != 0) reply.answers[i] = *push_one(request, i, now, &outbox);
  reply.age = age_clock_.pushed(request, reply.answers);
  ReplicateRequest forward;
  if (outbox.has_forwards()) {
    forward.push = with_memory(request);
    kill_point(KillPoint::kBeforeForward);
  }
  const ReceiptPtr receipt = replicator_.send(&outbox, forward);
  if (receipt) {
    kill_point(KillPoint::kAfterForward);
    reply.receipt = replicator_.receipts().number(receipt);
  }
  count_answers(reply);
  kill_point(KillPoint::kBeforeReply);
  done(reply);
  kill_point(KillPoint::kAfterReply);
}

void Server::confirm(uint64_t incarnation, uint64_t receipt, std::function<void(Status)> done) {
  if (incarnation != options_.incarnation)
    return done(error(Code::kStale, "confirm of another incarnation"));
  replicator_.receipts().confirm(receipt, [done = std::move(done)](const Status& status) {
    kill_point(KillPoint::kBeforeConfirm);
    done(status);
  });
}

}  // namespace flux
