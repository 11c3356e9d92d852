// The verb push: judge, apply and commit, shard by shard, each inside its lock.
#include "flux/base/hash.h"
#include "flux/server/server.h"

namespace flux {

uint64_t Server::payload_hash(const PushRequest& request, const Shard& shard) const {
  if (request.claim.verdict != Verdict::kApplied) return 0;
  if (shard.dense) return hash_bytes(dense_of(request, shard), shard.dense_size * sizeof(float));
  const uint32_t begin = request.keys.begin[shard.replica.shard()];
  const uint32_t n = request.keys.begin[shard.replica.shard() + 1] - begin;
  if (n == 0) return 0;
  uint64_t h = hash_bytes(request.keys.keys + begin, n * sizeof(uint64_t));
  h = hash_bytes(request.counts + begin, n * sizeof(uint32_t), h);
  for (size_t t = 0; t < dims_.size(); ++t)
    h = hash_bytes(request.tables[t] + static_cast<size_t>(begin) * dims_[t],
                   static_cast<size_t>(n) * dims_[t] * sizeof(float), h);
  return h;
}

std::optional<Answer> Server::refuse(const PushRequest& request, ShardId id) const {
  if (id >= shards_.size()) return Answer::kMalformed;
  if (!owns(id)) return Answer::kNotServing;
  if (request.epochs.size() != request.shards.size()) return Answer::kMalformed;
  if (!gradient_is_good(request, id)) return Answer::kMalformed;
  return std::nullopt;
}

ShardAnswer Server::push_one(const PushRequest& request, size_t i) {
  const ShardId id = request.shards[i];
  if (const auto refused = refuse(request, id)) return {id, *refused, 0, {}};
  Shard& shard = *shards_[id];
  const uint64_t hash = payload_hash(request, shard);
  const std::lock_guard lock(shard.mutex);
  ShardAnswer answer = shard.replica.judge(request.claim, request.epochs[i]);
  if (answer.answer != Answer::kApplied) return answer;
  if (request.claim.verdict == Verdict::kApplied) {
    if (shard.dense) {
      shard.dense->push(dense_of(request, shard), request.examples, request.lr_scale);
    } else if (const uint32_t begin = request.keys.begin[id]; true) {
      const uint32_t n = request.keys.begin[id + 1] - begin;
      for (size_t t = 0; t < shard.tables.size() && n > 0; ++t)
        shard.tables[t].push({request.keys.keys + begin, n},
                             request.tables[t] + static_cast<size_t>(begin) * dims_[t],
                             request.counts + begin, request.lr_scale);
    }
  }
  answer.op = shard.replica.commit(request.claim, hash);
  return answer;
}

void Server::push(const PushRequest& request, std::function<void(const PushReply&)> done) {
  pushes_.fetch_add(1, std::memory_order_relaxed);
  if (request.step != nullptr) return push_sync(request, std::move(done));
  PushReply reply;
  reply.answers.reserve(request.shards.size());
  for (size_t i = 0; i < request.shards.size(); ++i) {
    prefetch_ahead(request.keys, request.shards, i);
    reply.answers.push_back(push_one(request, i));
  }
  done(reply);
}

}  // namespace flux
