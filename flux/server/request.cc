// Whether what a request says about one shard can be used. A request that was decoded from a frame
// carries the number of its keys (ShardedKeys::limit); every range is checked against it, and every
// key that is to be written, because one in the wrong shard would spoil its checkpoint for ever.
#include "flux/base/key.h"
#include "flux/server/server.h"

namespace flux {

bool Server::range_is_good(const ShardedKeys& keys, ShardId shard) const {
  if (keys.begin == nullptr) return false;
  const uint32_t begin = keys.begin[shard];
  const uint32_t end = keys.begin[shard + 1];
  return begin <= end && end <= keys.limit && (begin == end || keys.keys != nullptr);
}

bool Server::keys_are_good(const ShardedKeys& keys, ShardId shard) const {
  if (!range_is_good(keys, shard)) return false;
  if (keys.limit == ShardedKeys::kTrusted) return true;
  bool good = true;
  for (uint32_t i = keys.begin[shard]; i < keys.begin[shard + 1]; ++i)
    good &= shard_of(keys.keys[i], options_.shards) == shard;
  return good;
}

const float* Server::dense_of(const PushRequest& request, const Shard& shard) const {
  const uint32_t d = shard.replica.shard() - options_.shards;
  if (!request.dense_parts.empty())
    return d < request.dense_parts.size() ? request.dense_parts[d] : nullptr;
  return request.dense == nullptr ? nullptr : request.dense + shard.dense_begin;
}

bool Server::gradient_is_good(const PushRequest& request, ShardId id) const {
  if (request.claim.verdict != Verdict::kApplied) return true;  // it has none
  if (!is_lr_scale(request.lr_scale)) return false;
  const Shard& shard = *shards_[id];
  if (shard.dense) return dense_of(request, shard) != nullptr;
  if (!keys_are_good(request.keys, id)) return false;
  if (request.keys.begin[id] == request.keys.begin[id + 1]) return true;
  if (request.counts == nullptr || request.tables.size() != dims_.size()) return false;
  for (const float* table : request.tables)
    if (table == nullptr) return false;
  return true;
}

Status Server::check_pull(const PullRequest& request) const {
  if (request.incarnation != options_.incarnation)
    return error(Code::kStale, "pull of another incarnation");
  for (const ShardId id : request.shards) {
    if (id >= shards_.size())
      return invalid("pull of shard {}, the job has {}", id, shards_.size());
    if (!owns(id)) return error(Code::kUnavailable, "shard {} is not served here", id);
    if (shards_[id]->dense) continue;
    if (!range_is_good(request.keys, id)) return invalid("pull of shard {}: bad keys", id);
    if (request.keys.begin[id] == request.keys.begin[id + 1]) continue;
    bool tables_are_good = request.tables.size() == dims_.size();
    for (const float* table : request.tables) tables_are_good &= table != nullptr;
    if (!tables_are_good)
      return invalid("pull of shard {}: rows of {} tables, the job has {}", id,
                     request.tables.size(), dims_.size());
  }
  return Status::ok();
}

}  // namespace flux
