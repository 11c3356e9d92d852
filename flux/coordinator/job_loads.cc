// What workers ask of shards: watched window by window; a shard moves away from a hot server.
#include <algorithm>

#include "flux/base/text.h"
#include "flux/coordinator/job_state.h"

namespace flux {
namespace {

constexpr size_t kHottestShown = 5;

// In percent of the other one.
uint64_t percent(uint64_t part, uint64_t of) {
  return of == 0
             ? 0
             : static_cast<uint64_t>(100.0 * static_cast<double>(part) / static_cast<double>(of));
}

}  // namespace

// Nothing is being moved, repaired or drained, and everything has the replicas that it should have.
bool JobMaster::State::places_rest() const {
  const bool drains = std::any_of(servers_.begin(), servers_.end(), [](const ServerEntry& s) {
    return !s.gone && (s.draining || !s.ready);
  });
  return places_on_ && !drains && places_->settled();
}

LoadedCluster JobMaster::State::loaded_cluster() const {
  LoadedCluster cluster;
  for (ServerId id = 0; id < servers_.size(); ++id)
    if (!servers_[id].gone && servers_[id].ready) cluster.servers.push_back(id);
  for (ShardId s = 0; s < plan_.all_shards; ++s) {
    const ShardPlace& place = places_->place(s);
    cluster.shards.push_back(
        {place.primary, place.backup, loads_->rates()[s], fixed_shards_.contains(s)});
  }
  return cluster;
}

void JobMaster::State::watch_loads() {
  if (!loads_ || !places_on_) return;
  if (!places_rest()) {
    window_rests_ = false;
    rebalancer_->disturbed();
  }
  if (now() < window_until_) return;
  const bool rests = std::exchange(window_rests_, true) && window_until_ != 0;
  window_until_ = now() + options_.rebalance.window_ns;
  loads_->close_window();
  if (!rests || phase_ != Phase::kTraining) return;
  const LoadedCluster cluster = loaded_cluster();
  for (const ServerId id : cluster.servers)
    if (!loads_->knows(id)) return rebalancer_->disturbed();
  const std::optional<LoadMove> move = rebalancer_->window(cluster);
  if (move && plan_.rebalance) move_for_load(*move);
}

std::string JobMaster::State::told_move(const LoadMove& move, const char* verb) const {
  return fmt::format(
      "shard {} {} from {} to {} for its load: it is {} % of the {} keys/s of {}, which has {} % "
      "more than the mean",
      move.shard, verb, server_name(move.from), server_name(move.to),
      percent(move.load, move.from_load), with_commas(move.from_load), server_name(move.from),
      percent(move.from_load - move.mean, move.mean));
}

void JobMaster::State::move_for_load(const LoadMove& move) {
  places_->pin(move.shard, server_name(move.to));
  log_member("move", server_name(move.to), 0, move.shard, kMovedForLoad);
  ++rebalanced_;
  rebalancer_->moved(move.shard);
  rebalancer_->disturbed();
  window_rests_ = false;
  say(told_move(move, "moves"));
  pump_places();
}

Result<std::string> JobMaster::State::rebalance(bool dry_run) {
  if (ended() || !places_on_ || !loads_)
    return error(Code::kCancelled, "job {} does not run", plan_.name);
  if (!options_.standing_servers.empty())
    return invalid("servers that stand by themselves do not tell their loads; use flux move");
  if (!places_rest())
    return error(Code::kUnavailable,
                 "shards are being moved, copied or drained; ask again when flux status shows none "
                 "without a backup and none on the move");
  if (rebalancer_->windows() == 0)
    return error(Code::kUnavailable,
                 "the load since the last move, or since a server came, is not known yet; ask "
                 "again in {} s",
                 options_.rebalance.window_ns / kSecond + 1);
  if (const std::optional<LoadMove> move = rebalancer_->ask()) {
    if (!dry_run) move_for_load(*move);
    return told_move(*move, dry_run ? "would move" : "moves");
  }
  const LoadedCluster seen = rebalancer_->seen();
  const auto loads = seen.loads();
  const auto most = std::max_element(
      loads.begin(), loads.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == loads.end()) return std::string("nothing to move: there is no server");
  return fmt::format(
      "nothing to move: {} has the most with {} keys/s, {} % more than the mean; up to {:.0f} % "
      "is left as it is, and so is what no single move would better",
      server_name(most->first), with_commas(most->second),
      percent(most->second - std::min(most->second, seen.mean()), seen.mean()),
      100 * options_.rebalance.margin);
}

void JobMaster::State::status_of_loads(JobStatus* s) const {
  s->rebalanced = rebalanced_;
  if (!loads_ || !places_on_) return;
  const LoadedCluster cluster = loaded_cluster();
  const auto loads = cluster.loads();
  for (ServerStatus& server : s->servers)
    if (const auto at = loads.find(server.id); at != loads.end()) server.keys_per_s = at->second;
  std::vector<ShardId> shards = all_shards();
  const auto rate = [&](ShardId id) { return loads_->rates()[id]; };
  const size_t shown = std::min(shards.size(), kHottestShown);
  std::partial_sort(
      shards.begin(), shards.begin() + static_cast<ptrdiff_t>(shown), shards.end(),
      [&](ShardId a, ShardId b) { return rate(a) != rate(b) ? rate(a) > rate(b) : a < b; });
  for (size_t i = 0; i < shown && rate(shards[i]) > 0; ++i) {
    const ServerId on = cluster.shards[shards[i]].primary;
    s->hottest_shards.push_back(
        {shards[i], on < servers_.size() ? server_name(on) : "", rate(shards[i])});
  }
}

}  // namespace flux
