// The verb push in sync mode: a push waits at each shard until its step is complete; whoever
// completes it applies the merged step and answers everybody. Also what completes steps otherwise.
#include "flux/api/lr_scale.h"
#include "flux/server/pour_batch.h"
#include "flux/server/server.h"

namespace flux {

// A push that waits. The lists are copies; keys, rows and dense floats stay the caller's.
struct Server::SyncPush {
  SyncPush(const PushRequest& from, std::function<void(const PushReply&)> when_done)
      : request(from),
        shards(from.shards.begin(), from.shards.end()),
        epochs(from.epochs.begin(), from.epochs.end()),
        tables(from.tables.begin(), from.tables.end()),
        dense_parts(from.dense_parts.begin(), from.dense_parts.end()),
        step(*from.step),
        done(std::move(when_done)),
        missing(from.shards.size()) {
    request.shards = shards;
    request.epochs = epochs;
    request.tables = tables;
    request.dense_parts = dense_parts;
    request.step = &step;
    reply.answers.resize(shards.size());
    backups.resize(shards.size());
  }
  SyncPush(const SyncPush&) = delete;

  PushRequest request;
  std::vector<ShardId> shards;
  std::vector<ShardEpoch> epochs;
  std::vector<const float*> tables;
  std::vector<const float*> dense_parts;
  SyncStep step;
  std::function<void(const PushReply&)> done;
  // Each answer is written once, by whoever holds its shard's step, and with it the backup that
  // follows the shard, if it has to be waited for.
  PushReply reply;
  std::vector<Follower> backups;
  std::atomic<size_t> missing;  // answers
  uint64_t bytes = 0;
};

namespace {

bool has_it(const ShardAnswer& answer) {
  return answer.answer == Answer::kApplied || answer.answer == Answer::kDuplicate;
}

}  // namespace

// With the lock of its shard held.
void Server::note_backup(const ShardSlot& slot, const SyncPour::Reply& reply) {
  if (!slot.backup.peer || !has_it(reply.answer)) return;
  static_cast<SyncPush*>(reply.ticket.push.get())->backups[reply.ticket.place] = slot.backup;
}

void Server::push_sync(const PushRequest& request, std::function<void(const PushReply&)> done) {
  const auto push = std::make_shared<SyncPush>(request, std::move(done));
  std::vector<std::optional<Answer>> refused;
  for (const ShardId id : push->shards) {
    refused.push_back(refuse(push->request, id));
    if (!refused.back()) push->bytes += gradient_bytes(push->request, id);
  }
  const uint64_t held = sync_bytes_.fetch_add(push->bytes, std::memory_order_relaxed);
  const bool full =
      (held > 0 && held + push->bytes > options_.sync_bytes_max) || replicator_.full();
  const TimeNs now = replicator_.now_ns();
  PourBatch batch(&replicator_, options_.tables.size(), options_.shards, shard_count());
  Replies answers;
  for (size_t i = 0; i < push->shards.size(); ++i) {
    const ShardId id = push->shards[i];
    if (refused[i] || full) {
      answers.push_back({{push, i}, {id, refused[i].value_or(Answer::kNotServing), 0, {}}});
    } else {
      push_sync_shard(push, i, now, &batch, &answers);
    }
  }
  settle_all(answers, &batch);
  if (push->shards.empty()) finish({push});
}

void Server::push_sync_shard(const std::shared_ptr<SyncPush>& push, size_t i, TimeNs now,
                             PourBatch* batch, Replies* answers) {
  const ShardId id = push->shards[i];
  ShardSlot& slot = *slots_[id];
  const std::lock_guard lock(slot.mutex);
  if (!is_serving(slot, now)) {
    // What is wrong with the claim comes first, as if it were served.
    ShardAnswer judged = slot.replica.judge(push->request.claim, push->epochs[i]);
    if (has_it(judged) || judged.answer == Answer::kPartial) judged.answer = Answer::kNotServing;
    if (slot.replica.role() == ReplicaRole::kNone) judged = {id, Answer::kNotServing, 0, {}};
    answers->push_back({{push, i}, std::move(judged)});
    return;
  }
  const SyncArrival arrival{
      &push->request.claim, push->epochs[i], &push->step, push->request.examples, {push, i}};
  auto answer = slot.reservoir.arrive(slot.replica, arrival);
  if (answer) {
    answers->push_back({{push, i}, std::move(*answer)});
    note_backup(slot, answers->back());
  } else {
    pour_all(&slot, batch, answers);
  }
}

void Server::pour_all(ShardSlot* slot, PourBatch* batch, Replies* answers) {
  SyncPour pour;
  while (slot->reservoir.next_pour(slot->replica, &pour)) {
    const uint64_t op = pour.shares.empty() ? 0 : apply_pour(slot, pour, batch);
    for (SyncPour::Reply& reply : pour.answers) {
      if (reply.answer.answer == Answer::kApplied) reply.answer.op = op;
      note_backup(*slot, reply);
      answers->push_back(std::move(reply));
    }
  }
}

uint64_t Server::apply_pour(ShardSlot* slot, const SyncPour& pour, PourBatch* batch) {
  const auto request_of = [](const SyncPour::Share& share) -> const PushRequest& {
    return static_cast<const SyncPush*>(share.ticket.push.get())->request;
  };
  const ShardId id = slot->replica.shard();
  const bool followed = slot->backup.peer || slot->learner.peer;
  SyncMerger& merger = batch->merger();
  uint64_t examples = 0;
  LrScaleMean mean;
  for (const SyncPour::Share& share : pour.shares) {
    examples += share.examples;
    mean.add(request_of(share).lr_scale, share.examples);
  }
  const float scale = mean.value();
  const uint32_t number = pour.claim.ids.front().block.phase;
  const PhaseView phase = shape_.phase(number);
  if (slot->rows.dense) {
    const bool has = phase.has_dense(id - options_.shards);
    const uint64_t size = has ? dense_size(id) : 0;
    merger.begin_dense(size);
    for (const SyncPour::Share& share : pour.shares)
      if (const float* gradient = dense_of(request_of(share), id); gradient != nullptr && has)
        merger.add_dense(gradient, share.weight, dense_begin(id), dense_rules_->sums());
    if (has) slot->rows.dense->push(merger.dense(), examples, scale);
    slot->count_served(pour.shares.size() * ShardSlot::keys_of_dense(size));
    const uint64_t hash = has ? with_lr_scale(merger.dense_hash(), scale) : 0;
    const uint64_t op = slot->replica.commit(pour.claim, hash);
    if (followed)
      forward_last(slot, size * sizeof(float),
                   batch->add_dense(pour.claim, {examples, scale}, id, size));
    return op;
  }
  size_t keys_max = 0;
  for (const SyncPour::Share& share : pour.shares) {
    const ShardedKeys& keys = request_of(share).keys;
    keys_max += keys.begin[id + 1] - keys.begin[id];
  }
  slot->count_served(keys_max);
  const std::vector<uint32_t>& width = widths(number, id);
  merger.begin_rows(keys_max, width);
  std::vector<const float*> rows(width.size());
  for (const SyncPour::Share& share : pour.shares) {
    const PushRequest& request = request_of(share);
    if (phase_of(request) != number) continue;  // no honest worker's
    const uint32_t begin = request.keys.begin[id];
    const uint32_t n = request.keys.begin[id + 1] - begin;
    for (size_t t = 0; t < width.size() && n > 0; ++t)
      rows[t] = width[t] == 0 ? nullptr : request.tables[t] + row_at(request.keys, t, begin);
    merger.add_rows({request.keys.keys + begin, n}, request.counts + begin, rows, share.weight);
  }
  for (size_t t = 0; t < slot->rows.tables.size() && keys_max > 0; ++t)
    if (width[t] > 0)
      slot->rows.tables[t].push(merger.keys(), merger.table(t), merger.counts(), scale);
  const bool empty = merger.keys().empty();
  const uint64_t op = slot->replica.commit(
      pour.claim, empty ? merger.rows_hash() : with_lr_scale(merger.rows_hash(), scale));
  if (followed) {
    uint64_t row = sizeof(Key) + sizeof(uint32_t);
    for (const uint32_t floats : width) row += floats * sizeof(float);
    forward_last(slot, merger.keys().size() * row,
                 batch->add_rows(pour.claim, {examples, scale}, id));
  }
  return op;
}

void Server::settle(const SyncPour::Reply& reply, SyncPushes* finished) {
  auto push = std::static_pointer_cast<SyncPush>(reply.ticket.push);
  push->reply.answers[reply.ticket.place] = reply.answer;
  // The last one to come sees what all others wrote.
  if (push->missing.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  finished->push_back(std::move(push));
}

// Forwards first: a receipt waits for them.
void Server::settle_all(const Replies& answers, PourBatch* batch) {
  if (batch != nullptr) batch->send();
  SyncPushes finished;
  for (const SyncPour::Reply& reply : answers) settle(reply, &finished);
  finish(finished);
}

void Server::finish(const SyncPushes& finished) {
  for (const std::shared_ptr<SyncPush>& push : finished) {
    sync_bytes_.fetch_sub(push->bytes, std::memory_order_relaxed);
    Outbox outbox(&replicator_);
    for (size_t i = 0; i < push->backups.size(); ++i)
      if (push->backups[i].peer) outbox.wait_for_head(push->backups[i], push->shards[i]);
    const ReceiptPtr receipt = replicator_.send(&outbox, {});
    if (receipt) push->reply.receipt = replicator_.receipts().number(receipt);
    count_answers(push->reply);
    const auto done = std::move(push->done);
    done(push->reply);
  }
}

void Server::change_shards(std::span<const ShardId> shards,
                           const std::function<void(ShardSlot*, Replies*)>& change) {
  PourBatch batch(&replicator_, options_.tables.size(), options_.shards, shard_count());
  Replies answers;
  for (const ShardId id : shards) {
    const std::lock_guard lock(slots_[id]->mutex);
    change(slots_[id].get(), &answers);
    pour_all(slots_[id].get(), &batch, &answers);
  }
  settle_all(answers, &batch);
}

Status Server::void_member(const AdminCall& call, uint64_t round, const BlockId& block) {
  if (round == 0) return invalid("{}: there is no round 0", to_string(block));
  FLUX_RETURN_IF_ERROR(check_call(call, true));
  change_shards(call.shards,
                [&](ShardSlot* slot, Replies*) { slot->reservoir.void_member(round, block); });
  return Status::ok();
}

void Server::close() {
  closed_ = true;
  Replies answers;
  for (const auto& slot : slots_) {
    const std::lock_guard lock(slot->mutex);
    for (SyncPour::Reply& reply : slot->reservoir.clear(slot->replica, Answer::kNotServing))
      answers.push_back(std::move(reply));
  }
  settle_all(answers, nullptr);
  give_up_waits();
  drop_held();
}

std::string Server::sync_waits() const {
  for (const auto& slot : slots_) {
    const std::lock_guard lock(slot->mutex);
    std::string text = slot->reservoir.waits_for(slot->replica);
    if (!text.empty()) return text;
  }
  return "";
}

}  // namespace flux
