// The verb pull: current rows and dense values; changes nothing.
#include "flux/server/server.h"

namespace flux {

void Server::pull(const PullRequest& request, std::function<void(const PullReply&)> done) {
  PullReply reply;
  if (request.incarnation != options_.incarnation) {
    reply.status = error(Code::kStale, "pull of another incarnation");
    done(reply);
    return;
  }
  for (const ShardId id : request.shards) {
    const Shard& shard = *shards_[id];
    if (shard.dense) {
      if (request.dense == nullptr) continue;
      const std::lock_guard lock(shard.mutex);
      shard.dense->pull(request.dense + shard.dense_begin);
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
