#include "flux/cluster/rebalance.h"

#include <algorithm>

namespace flux {
namespace {

double number(uint64_t load) {
  return static_cast<double>(load);
}

// Above this a server is hot.
double limit_of(const LoadedCluster& cluster, const RebalanceOptions& options) {
  return number(cluster.mean()) * (1 + options.margin);
}

bool has_work(const LoadedCluster& cluster, const RebalanceOptions& options) {
  return cluster.servers.size() > 1 && cluster.mean() > 0 && cluster.mean() >= options.least_mean;
}

}  // namespace

std::map<ServerId, uint64_t> LoadedCluster::loads() const {
  std::map<ServerId, uint64_t> loads;
  for (const ServerId id : servers) loads[id] = 0;
  for (const LoadedShard& shard : shards)
    if (const auto at = loads.find(shard.primary); at != loads.end()) at->second += shard.load;
  return loads;
}

uint64_t LoadedCluster::mean() const {
  uint64_t sum = 0;
  for (const LoadedShard& shard : shards) sum += shard.load;
  return servers.empty() ? 0 : sum / servers.size();
}

std::optional<LoadMove> find_move(const LoadedCluster& cluster, const RebalanceOptions& options,
                                  const std::function<bool(ServerId)>& may_give) {
  if (!has_work(cluster, options)) return std::nullopt;
  const uint64_t mean = cluster.mean();
  const double limit = limit_of(cluster, options);
  std::vector<std::pair<uint64_t, ServerId>> servers;
  for (const auto& [id, load] : cluster.loads()) servers.emplace_back(load, id);
  std::stable_sort(servers.begin(), servers.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [hot, from] : servers) {
    if (number(hot) <= limit) break;
    if (!may_give(from)) continue;
    std::optional<LoadMove> best;
    double best_worth = 0;
    for (ShardId s = 0; s < cluster.shards.size(); ++s) {
      const LoadedShard& shard = cluster.shards[s];
      if (shard.primary != from || shard.fixed || shard.load == 0) continue;
      for (const auto& [load, to] : servers) {
        if (to == from || number(load + shard.load) > limit) continue;
        const double saves = number(hot - std::max(hot - shard.load, load + shard.load));
        const double worth = to == shard.backup ? saves : saves * options.copy_worth;
        if (saves < options.gain * number(mean) || worth <= best_worth) continue;
        best_worth = worth;
        best = LoadMove{s, from, to, shard.load, hot, load, mean};
      }
    }
    if (best) return best;
  }
  return std::nullopt;
}

void Rebalancer::disturbed() {
  seen_.clear();
  hot_.clear();
}

std::optional<LoadMove> Rebalancer::window(const LoadedCluster& cluster) {
  for (auto& [shard, left] : resting_) --left;
  std::erase_if(resting_, [](const auto& entry) { return entry.second == 0; });
  seen_.push_back(cluster);
  if (seen_.size() > options_.windows) seen_.pop_front();
  std::map<ServerId, uint32_t> hot;
  const double limit = limit_of(cluster, options_);
  for (const auto& [id, load] : cluster.loads())
    if (has_work(cluster, options_) && number(load) > limit) hot[id] = hot_[id] + 1;
  hot_ = std::move(hot);
  return find_move(seen(), options_, [this](ServerId id) {
    const auto at = hot_.find(id);
    return at != hot_.end() && at->second >= options_.windows;
  });
}

std::optional<LoadMove> Rebalancer::ask() const {
  return find_move(seen(), options_, [](ServerId) { return true; });
}

LoadedCluster Rebalancer::seen() const {
  if (seen_.empty()) return {};
  LoadedCluster mean = seen_.back();
  for (ShardId s = 0; s < mean.shards.size(); ++s) {
    uint64_t sum = 0;
    for (const LoadedCluster& one : seen_) sum += one.shards[s].load;
    mean.shards[s].load = sum / seen_.size();
    mean.shards[s].fixed |= resting_.contains(s);
  }
  return mean;
}

}  // namespace flux
