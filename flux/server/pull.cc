// The verb pull: current rows and dense values; changes nothing.
#include "flux/server/server.h"

namespace flux {

// Each shard gets few keys of a batch: its index lines are asked for while shards before it work.
void Server::prefetch_ahead(const ShardedKeys& keys, std::span<const ShardId> shards,
                            size_t i) const {
  constexpr size_t kAhead = 2;
  const size_t first = i == 0 ? 0 : i + kAhead;
  for (size_t j = first; j <= i + kAhead && j < shards.size(); ++j) {
    const ShardId id = shards[j];
    if (id >= options_.shards || keys.begin == nullptr) return;  // dense, or no rows at all
    const uint32_t begin = keys.begin[id];
    const uint32_t end = keys.begin[id + 1];
    if (!owns(id) || begin >= end || end > keys.limit) continue;
    for (const SparseShard& table : shards_[id]->tables)
      table.prefetch({keys.keys + begin, end - begin});
  }
}

void Server::pull_dense(const PullRequest& request, const Shard& shard) const {
  const uint32_t d = shard.replica.shard() - options_.shards;
  float* out = request.dense == nullptr ? nullptr : request.dense + shard.dense_begin;
  if (!request.dense_parts.empty())
    out = d < request.dense_parts.size() ? request.dense_parts[d] : nullptr;
  if (out == nullptr) return;
  const std::lock_guard lock(shard.mutex);
  shard.dense->pull(out);
}

void Server::pull(const PullRequest& request, std::function<void(const PullReply&)> done) {
  pulls_.fetch_add(1, std::memory_order_relaxed);
  PullReply reply;
  reply.status = check_pull(request);
  for (size_t i = 0; reply.status.is_ok() && i < request.shards.size(); ++i) {
    const ShardId id = request.shards[i];
    prefetch_ahead(request.keys, request.shards, i);
    const Shard& shard = *shards_[id];
    if (shard.dense) {
      pull_dense(request, shard);
      continue;
    }
    const uint32_t begin = request.keys.begin[id];
    const uint32_t n = request.keys.begin[id + 1] - begin;
    if (n == 0) continue;
    const std::lock_guard lock(shard.mutex);
    for (size_t t = 0; t < shard.tables.size(); ++t)
      shard.tables[t].pull({request.keys.keys + begin, n},
                           request.tables[t] + static_cast<size_t>(begin) * dims_[t]);
  }
  done(reply);
}

}  // namespace flux
