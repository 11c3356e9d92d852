#include "flux/cluster/shard_loads.h"

#include <utility>

namespace flux {

void ShardLoads::reported(ServerId server, std::vector<ShardWork> totals, TimeNs now) {
  const auto [at, first] = sources_.try_emplace(server);
  Source& source = at->second;
  if (first) {
    source.before = totals;
    source.before_ns = now;
  }
  source.totals = std::move(totals);
  source.totals_ns = now;
}

void ShardLoads::add(const Source& source) {
  const double seconds =
      static_cast<double>(source.totals_ns - source.before_ns) / static_cast<double>(kSecond);
  auto before = source.before.begin();
  for (const ShardWork& work : source.totals) {
    while (before != source.before.end() && before->shard < work.shard) ++before;
    const bool had = before != source.before.end() && before->shard == work.shard;
    const uint64_t less = had && before->keys <= work.keys ? before->keys : 0;
    if (work.shard < rates_.size())
      rates_[work.shard] += static_cast<uint64_t>(static_cast<double>(work.keys - less) / seconds);
  }
}

void ShardLoads::close_window() {
  rates_.assign(rates_.size(), 0);
  for (auto& [server, source] : sources_) {
    source.known = source.totals_ns > source.before_ns;
    if (!source.known) continue;
    add(source);
    source.before = source.totals;
    source.before_ns = source.totals_ns;
  }
}

bool ShardLoads::knows(ServerId server) const {
  const auto at = sources_.find(server);
  return at != sources_.end() && at->second.known;
}

}  // namespace flux
