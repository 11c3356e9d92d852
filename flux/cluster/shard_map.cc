#include "flux/cluster/shard_map.h"

#include <algorithm>
#include <optional>

#include "flux/base/check.h"
#include "flux/base/hash.h"

namespace flux {

std::vector<ShardId> ShardMap::place(const std::vector<std::string>& servers) {
  FLUX_CHECK(std::any_of(servers.begin(), servers.end(), [](const auto& s) { return !s.empty(); }),
             "no server to place shards on");
  std::vector<uint64_t> hashes;
  for (const std::string& name : servers) hashes.push_back(hash_bytes(name));
  const auto best = [&](ShardId shard) {
    std::optional<ServerId> found;
    uint64_t highest = 0;
    for (ServerId s = 0; s < servers.size(); ++s) {
      if (servers[s].empty()) continue;
      const uint64_t score = hash_pair(hashes[s], shard);
      const bool wins = !found || score > highest ||
                        (score == highest && servers[s] < servers[*found]);  // in any order of them
      if (!wins) continue;
      found = s;
      highest = score;
    }
    return *found;
  };
  const bool first = route_.server.empty();
  route_.server.resize(shards_);
  route_.epoch.resize(shards_);
  owner_.resize(shards_);
  std::vector<ShardId> changed;
  for (ShardId shard = 0; shard < shards_; ++shard) {
    const ServerId server = best(shard);
    if (!first && route_.server[shard] == server && owner_[shard] == servers[server]) continue;
    route_.server[shard] = server;
    owner_[shard] = servers[server];
    changed.push_back(shard);
  }
  if (changed.empty()) return changed;
  ++n_;
  for (const ShardId shard : changed) route_.epoch[shard] = ShardEpoch{term_, n_};
  return changed;
}

std::vector<ShardId> ShardMap::owned_by(ServerId server) const {
  std::vector<ShardId> owned;
  for (ShardId shard = 0; shard < route_.size(); ++shard)
    if (route_.server[shard] == server) owned.push_back(shard);
  return owned;
}

}  // namespace flux
