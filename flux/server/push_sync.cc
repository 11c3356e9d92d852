// The verb push in sync mode: a push waits at each shard until its step is complete; whoever
// completes it applies the merged step and answers everybody. Also what completes steps otherwise.
#include "flux/server/server.h"
#include "flux/server/sync_merger.h"

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
  }
  SyncPush(const SyncPush&) = delete;

  PushRequest request;
  std::vector<ShardId> shards;
  std::vector<ShardEpoch> epochs;
  std::vector<const float*> tables;
  std::vector<const float*> dense_parts;
  SyncStep step;
  std::function<void(const PushReply&)> done;
  PushReply reply;              // each answer is written once, by whoever holds its shard's step
  std::atomic<size_t> missing;  // answers
  uint64_t bytes = 0;
};

uint64_t Server::gradient_bytes(const PushRequest& request, ShardId id) const {
  const Shard& shard = *shards_[id];
  if (shard.dense) return shard.dense_size * sizeof(float);
  uint64_t row = sizeof(Key) + sizeof(uint32_t);
  for (const uint32_t dim : dims_) row += dim * sizeof(float);
  return (request.keys.begin[id + 1] - request.keys.begin[id]) * row;
}

void Server::push_sync(const PushRequest& request, std::function<void(const PushReply&)> done) {
  const auto push = std::make_shared<SyncPush>(request, std::move(done));
  std::vector<std::optional<Answer>> refused;
  for (const ShardId id : push->shards) {
    refused.push_back(refuse(push->request, id));
    if (!refused.back()) push->bytes += gradient_bytes(push->request, id);
  }
  const uint64_t held = sync_bytes_.fetch_add(push->bytes, std::memory_order_relaxed);
  const bool full = held > 0 && held + push->bytes > options_.sync_bytes_max;
  SyncMerger merger(dims_);
  SyncPushes finished;
  for (size_t i = 0; i < push->shards.size(); ++i) {
    const ShardId id = push->shards[i];
    if (refused[i] || full) {
      settle({{push, i}, {id, refused[i].value_or(Answer::kNotServing), 0, {}}}, &finished);
    } else {
      push_sync_shard(push, i, &merger, &finished);
    }
  }
  if (push->shards.empty()) finished.push_back(push);
  finish(finished);
}

void Server::push_sync_shard(const std::shared_ptr<SyncPush>& push, size_t i, SyncMerger* merger,
                             SyncPushes* finished) {
  Shard& shard = *shards_[push->shards[i]];
  std::vector<SyncPour::Reply> answers;
  {
    const std::lock_guard lock(shard.mutex);
    const SyncArrival arrival{
        &push->request.claim, push->epochs[i], &push->step, push->request.examples, {push, i}};
    auto answer = shard.reservoir.arrive(shard.replica, arrival);
    if (answer) {
      answers.push_back({{push, i}, std::move(*answer)});
    } else {
      pour_all(&shard, merger, &answers);
    }
  }
  for (const SyncPour::Reply& reply : answers) settle(reply, finished);
}

void Server::pour_all(Shard* shard, SyncMerger* merger, std::vector<SyncPour::Reply>* answers) {
  SyncPour pour;
  while (shard->reservoir.next_pour(shard->replica, &pour)) {
    const uint64_t op = pour.shares.empty() ? 0 : apply_pour(shard, pour, merger);
    for (SyncPour::Reply& reply : pour.answers) {
      if (reply.answer.answer == Answer::kApplied) reply.answer.op = op;
      answers->push_back(std::move(reply));
    }
  }
}

uint64_t Server::apply_pour(Shard* shard, const SyncPour& pour, SyncMerger* merger) {
  const auto request_of = [](const SyncPour::Share& share) -> const PushRequest& {
    return static_cast<const SyncPush*>(share.ticket.push.get())->request;
  };
  LrScaleMean scale;
  for (const SyncPour::Share& share : pour.shares)
    scale.add(request_of(share).lr_scale, share.examples);
  if (shard->dense) {
    uint64_t examples = 0;
    merger->begin_dense(shard->dense_size);
    for (const SyncPour::Share& share : pour.shares) {
      merger->add_dense(dense_of(request_of(share), *shard), share.weight);
      examples += share.examples;
    }
    shard->dense->push(merger->dense(), examples, scale.value());
    return shard->replica.commit(pour.claim, merger->dense_hash());
  }
  const ShardId id = shard->replica.shard();
  size_t keys_max = 0;
  for (const SyncPour::Share& share : pour.shares) {
    const ShardedKeys& keys = request_of(share).keys;
    keys_max += keys.begin[id + 1] - keys.begin[id];
  }
  merger->begin_rows(keys_max);
  for (const SyncPour::Share& share : pour.shares) {
    const PushRequest& request = request_of(share);
    const uint32_t begin = request.keys.begin[id];
    merger->add_rows({request.keys.keys + begin, request.keys.begin[id + 1] - begin},
                     request.counts + begin, request.tables, begin, share.weight);
  }
  for (size_t t = 0; t < shard->tables.size() && keys_max > 0; ++t)
    shard->tables[t].push(merger->keys(), merger->table(t), merger->counts(), scale.value());
  return shard->replica.commit(pour.claim, merger->rows_hash());
}

void Server::settle(const SyncPour::Reply& reply, SyncPushes* finished) {
  auto push = std::static_pointer_cast<SyncPush>(reply.ticket.push);
  push->reply.answers[reply.ticket.place] = reply.answer;
  // The last one to come sees what all others wrote.
  if (push->missing.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  finished->push_back(std::move(push));
}

void Server::finish(const SyncPushes& finished) {
  for (const std::shared_ptr<SyncPush>& push : finished) {
    sync_bytes_.fetch_sub(push->bytes, std::memory_order_relaxed);
    const auto done = std::move(push->done);
    done(push->reply);
  }
}

void Server::change_shards(const std::function<void(Shard*, Replies*)>& change) {
  SyncMerger merger(dims_);
  SyncPushes finished;
  for (const ShardId id : owned_) {
    Replies answers;
    {
      const std::lock_guard lock(shards_[id]->mutex);
      change(shards_[id].get(), &answers);
      pour_all(shards_[id].get(), &merger, &answers);
    }
    for (const SyncPour::Reply& reply : answers) settle(reply, &finished);
  }
  finish(finished);
}

Status Server::void_member(uint64_t round, const BlockId& block) {
  if (round == 0) return invalid("{}: there is no round 0", to_string(block));
  change_shards([&](Shard* shard, Replies*) { shard->reservoir.void_member(round, block); });
  return Status::ok();
}

void Server::seal() {
  change_shards([](Shard* shard, Replies* answers) {
    shard->replica.seal();
    *answers = shard->reservoir.clear(shard->replica, Answer::kNotServing);
  });
}

std::string Server::sync_waits() const {
  for (const ShardId id : owned_) {
    const std::lock_guard lock(shards_[id]->mutex);
    std::string text = shards_[id]->reservoir.waits_for(shards_[id]->replica);
    if (!text.empty()) return text;
  }
  return "";
}

}  // namespace flux
