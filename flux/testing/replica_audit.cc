#include "flux/testing/replica_audit.h"

#include <algorithm>

#include <fmt/format.h>

namespace flux {
namespace {

bool counts(const ShardState& state) {
  return state.complete &&
         (state.role == ReplicaRole::kPrimary || state.role == ReplicaRole::kBackup);
}

}  // namespace

void ReplicaAudit::rolled_back(uint64_t incarnation, ShardId shard, ShardEpoch epoch) {
  told_.erase({incarnation, shard});
  since_[{incarnation, shard}] = epoch;
}

void ReplicaAudit::acknowledged(uint64_t incarnation, ShardId shard, ShardEpoch epoch,
                                bool followed, std::span<const BatchId> ids) {
  said(shard, ids);
  const auto since = since_.find({incarnation, shard});
  if (since != since_.end() && epoch < since->second) return;
  for (const BatchId& id : ids) {
    const auto [at, is_new] =
        told_[{incarnation, shard}].try_emplace(id, Told{epoch, deaths_ + (followed ? 2 : 1)});
    at->second.epoch = std::min(at->second.epoch, epoch);
  }
  ++count_;
}

void ReplicaAudit::taken_over(uint64_t incarnation, ShardId shard, ShardEpoch latest) {
  std::erase_if(told_[{incarnation, shard}],
                [&](const auto& told) { return told.second.epoch > latest; });
}

std::string ReplicaAudit::compare(const std::vector<Seen>& servers, ShardId shard) {
  for (size_t a = 0; a < servers.size(); ++a) {
    const ShardState first = servers[a].server->state(shard);
    if (!counts(first)) continue;
    for (size_t b = a + 1; b < servers.size(); ++b) {
      const ShardState second = servers[b].server->state(shard);
      if (!counts(second) || first.epoch != second.epoch) continue;
      const std::string who =
          fmt::format("shard {} on {} and {}, epoch {}.{}", shard, servers[a].name, servers[b].name,
                      first.epoch.term, first.epoch.n);
      if (first.role == second.role)
        return fmt::format("{}: both are {}", who, role_name(first.role));
      const ShardState& primary = first.role == ReplicaRole::kPrimary ? first : second;
      const ShardState& backup = first.role == ReplicaRole::kPrimary ? second : first;
      if (backup.op > primary.op)
        return fmt::format("{}: the backup has {} operations, the primary {}", who, backup.op,
                           primary.op);
      if (backup.op == primary.op && backup.stream_hash != primary.stream_hash)
        return fmt::format("{}: histories of {} operations differ", who, backup.op);
    }
  }
  return "";
}

std::string ReplicaAudit::check(const std::vector<Seen>& servers, const ShardAudit& rows,
                                uint32_t closed) const {
  if (servers.empty()) return "";
  for (ShardId shard = 0; shard < servers[0].server->shard_count(); ++shard) {
    std::string wrong = compare(servers, shard);
    if (!wrong.empty()) return wrong;
    for (const Seen& seen : servers) {
      const ShardState state = seen.server->state(shard);
      if (!state.complete || state.role == ReplicaRole::kNone) continue;
      if (state.role == ReplicaRole::kBackup) ++backups_;
      const ShardImage image = seen.server->image(shard);
      wrong = rows.check(image);
      if (!wrong.empty())
        return fmt::format("{} ({}): {}", seen.name, role_name(state.role), wrong);
      if (image.replica.ledger().watermark() > closed)
        return fmt::format("{}: shard {} forgot passes below {}, but only {} are closed", seen.name,
                           shard, image.replica.ledger().watermark(), closed);
    }
  }
  return "";
}

bool ReplicaAudit::may_be_lost(const std::vector<Seen>& members, ShardId shard, const BatchId& id,
                               const Told& told) const {
  if (deaths_ < told.deaths) return false;
  for (const Seen& seen : members)
    if (seen.server->state(shard).complete && seen.server->replica(shard).ledger().find(id))
      return false;
  return true;
}

std::string ReplicaAudit::check_owners(const std::vector<Seen>& servers, const ClusterMap& map,
                                       uint64_t incarnation) const {
  std::vector<Seen> members;
  for (const Seen& seen : servers)
    if (std::find(map.servers.begin(), map.servers.end(), seen.address) != map.servers.end())
      members.push_back(seen);
  for (const auto& [key, ids] : told_) {
    const ShardId shard = key.second;
    if (key.first != incarnation || shard >= map.route.size()) continue;
    const ServerId owner = map.route.server[shard];
    if (owner >= map.servers.size() || map.servers[owner].empty()) continue;
    for (const Seen& seen : servers) {
      if (seen.address != map.servers[owner]) continue;
      const ShardState state = seen.server->state(shard);
      // Another process at that address, or one that is told right now.
      if (state.role != ReplicaRole::kPrimary || state.epoch != map.route.epoch[shard]) continue;
      const ShardReplica replica = seen.server->replica(shard);
      for (const auto& [id, told] : ids)
        if (!replica.ledger().find(id) && !may_be_lost(members, shard, id, told))
          return fmt::format("shard {}: {} was told replicated, but its owner {} lacks it", shard,
                             to_string(id), seen.name);
    }
  }
  return "";
}

}  // namespace flux
