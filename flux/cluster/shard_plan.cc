// ShardPlaces: what is wanted, and what is done next.
#include <algorithm>

#include <fmt/format.h>

#include "flux/base/hash.h"
#include "flux/cluster/shard_places.h"

namespace flux {

void ShardPlaces::rank_servers() {
  if (ranked_) return;
  ranked_ = true;
  std::vector<ServerId> candidates;
  for (const bool drain : {false, true}) {
    for (ServerId id = 0; id < servers_.size(); ++id)
      if (servers_[id].live && servers_[id].draining == drain) candidates.push_back(id);
    if (!candidates.empty()) break;
  }
  std::vector<std::pair<uint64_t, ServerId>> scored(candidates.size());
  for (ShardId s = 0; s < shards_.size(); ++s) {
    for (size_t i = 0; i < candidates.size(); ++i)
      scored[i] = {hash_pair(servers_[candidates[i]].hash, s), candidates[i]};
    const auto pinned = pins_.find(s);
    std::sort(scored.begin(), scored.end(), [&](const auto& a, const auto& b) {
      const std::string &left = servers_[a.second].name, &right = servers_[b.second].name;
      if (pinned != pins_.end() && (left == pinned->second) != (right == pinned->second))
        return left == pinned->second;
      return a.first != b.first ? a.first > b.first : left < right;
    });
    ranks_[s].clear();
    for (const auto& [score, id] : scored) ranks_[s].push_back(id);
  }
}

std::vector<ServerId> ShardPlaces::wanted(ShardId shard) const {
  return ranked_ ? ranks_[shard] : std::vector<ServerId>();
}

bool ShardPlaces::served(ShardId shard) const {
  const Shard& s = shards_[shard];
  return !s.lost && live(s.place.primary);
}

// What cannot wait.
void ShardPlaces::repair(ShardId s, TimeNs now) {
  Shard& shard = shards_[s];
  if (shard.busy) return;
  const ShardPlace& place = shard.place;
  if (!shard.lost && !live(place.primary)) {
    if (live(place.backup)) return promote(s, place.backup, false, now);
    shard.lost = true;
  }
  if (shard.lost) {
    for (const ServerId id : ranks_[s]) {
      if (stale_.contains({id, s})) continue;
      set_task(s, StepKind::kRestore, id, now);
      return;
    }
    return;
  }
  const bool dead = place.backup != kNoServer && !live(place.backup);
  if (dead || shard.renew) set_task(s, StepKind::kDrop, place.primary, now);
}

bool ShardPlaces::may_copy(ShardId s, ServerId target, TimeNs now) const {
  const ServerId from = shards_[s].place.primary;
  return copies_ < options_.copies_max && servers_[from].copies < options_.copies_per_server &&
         servers_[target].copies < options_.copies_per_server && !avoided(from, target, now) &&
         !stale_.contains({target, s});
}

void ShardPlaces::begin_copy(ShardId s, ServerId target, TimeNs now) {
  if (may_copy(s, target, now)) set_task(s, StepKind::kCopy, target, now);
}

// One step towards what is wanted.
void ShardPlaces::improve(ShardId s, TimeNs now) {
  Shard& shard = shards_[s];
  if (shard.busy || shard.lost || !live(shard.place.primary)) return;
  const std::vector<ServerId>& ranks = ranks_[s];
  const auto [primary, backup, epoch] = shard.place;
  const ServerId first = ranks[0];
  if (primary != first && !avoided(primary, first, now)) {
    if (backup != first) return begin_copy(s, first, now);
    if (switches_ < options_.switches_max) set_task(s, StepKind::kSeal, first, now);
    return;
  }
  ServerId second = kNoServer;
  for (const ServerId id : ranks)
    if (second == kNoServer && id != primary && !avoided(primary, id, now)) second = id;
  const bool wants_backup = options_.replicas > 1 && second != kNoServer;
  if (wants_backup && backup != second) return begin_copy(s, second, now);
  const bool too_many = backup != kNoServer && (options_.replicas < 2 || drains(backup));
  if (!wants_backup && too_many) set_task(s, StepKind::kDrop, primary, now);
}

PlaceStep ShardPlaces::make_step(ShardId s) {
  Shard& shard = shards_[s];
  const bool asks_primary = shard.doing == StepKind::kDrop || shard.doing == StepKind::kCopy ||
                            shard.doing == StepKind::kAttach || shard.doing == StepKind::kSeal;
  if (shard.doing == StepKind::kRestore) {  // two, above what the server may remember
    new_epoch();
    shard.epoch = new_epoch();
  }
  PlaceStep step;
  step.id = shard.step = ++last_step_;
  step.kind = shard.doing;
  step.shard = s;
  step.server = asks_primary ? shard.place.primary : shard.target;
  if (shard.doing == StepKind::kCopy || shard.doing == StepKind::kAttach) step.other = shard.target;
  if (shard.doing == StepKind::kSwitch) step.other = shard.place.primary;
  step.epoch = shard.epoch;
  step.op = shard.op;
  running_[step.id] = s;
  return step;
}

void ShardPlaces::forget_stale(TimeNs now, std::vector<PlaceStep>* out) {
  for (auto& [key, stale] : stale_) {
    const Shard& shard = shards_[key.second];
    if (stale.step != 0 || now < stale.due) continue;
    if (shard.lost && shard.step != 0) continue;  // its epoch would be older than ours
    // Not before those who replace it are in office; it may be needed.
    if (shard.busy && shard.doing != StepKind::kCopy && shard.doing != StepKind::kRestore) continue;
    // Not newer than what the primary has: servers remember it, and would tell the primary that its
    // time is over.
    const ShardEpoch epoch = shard.lost ? new_epoch() : shard.place.epoch;
    stale.step = ++last_step_;
    forgetting_[stale.step] = key;
    out->push_back({stale.step, StepKind::kForget, key.second, key.first, kNoServer, epoch, 0});
  }
}

std::vector<PlaceStep> ShardPlaces::next(TimeNs now) {
  std::vector<PlaceStep> steps;
  rank_servers();
  for (ShardId s = 0; s < shards_.size(); ++s) repair(s, now);
  // Those without a backup first.
  for (const bool bare : {true, false})
    for (ShardId s = 0; s < shards_.size(); ++s)
      if ((shards_[s].place.backup == kNoServer) == bare) improve(s, now);
  for (ShardId s = 0; s < shards_.size(); ++s) {
    Shard& shard = shards_[s];
    if (!shard.busy || shard.step != 0 || now < shard.due) continue;
    // What is there goes first.
    if (shard.doing == StepKind::kRestore && stale_.contains({shard.target, s})) continue;
    if (shard.until == 0) shard.until = now + options_.settle_ns;  // adopted
    steps.push_back(make_step(s));
  }
  forget_stale(now, &steps);
  return steps;
}

std::optional<TimeNs> ShardPlaces::next_time() const {
  std::optional<TimeNs> earliest;
  const auto take = [&](TimeNs time) { earliest = std::min(earliest.value_or(time), time); };
  for (const Shard& shard : shards_)
    if (shard.busy && shard.step == 0) take(shard.due);
  for (const auto& [key, stale] : stale_)
    if (stale.step == 0) take(stale.due);
  return earliest;
}

ShardRoute ShardPlaces::route() const {
  ShardRoute route;
  for (const Shard& shard : shards_) {
    route.server.push_back(shard.place.primary);
    route.epoch.push_back(shard.place.epoch);
  }
  return route;
}

uint32_t ShardPlaces::primaries(ServerId server) const {
  return static_cast<uint32_t>(std::count_if(shards_.begin(), shards_.end(), [&](const Shard& s) {
    return !s.lost && s.place.primary == server;
  }));
}

uint32_t ShardPlaces::alone_with(ServerId server) const {
  return static_cast<uint32_t>(std::count_if(shards_.begin(), shards_.end(), [&](const Shard& s) {
    return s.place.primary == server && !live(s.place.backup);
  }));
}

uint32_t ShardPlaces::backups(ServerId server) const {
  return static_cast<uint32_t>(std::count_if(
      shards_.begin(), shards_.end(), [&](const Shard& s) { return s.place.backup == server; }));
}

bool ShardPlaces::empty(ServerId server) const {
  if (primaries(server) > 0 || backups(server) > 0) return false;
  for (const Shard& s : shards_)
    if (s.busy && (s.target == server || s.spare == server)) return false;
  return std::none_of(stale_.begin(), stale_.end(),
                      [&](const auto& entry) { return entry.first.first == server; });
}

size_t ShardPlaces::live_servers() const {
  return static_cast<size_t>(std::count_if(servers_.begin(), servers_.end(),
                                           [](const Server& server) { return server.live; }));
}

uint32_t ShardPlaces::without_backup() const {
  if (options_.replicas < 2) return 0;
  return static_cast<uint32_t>(std::count_if(shards_.begin(), shards_.end(), [](const Shard& s) {
    return s.lost || s.place.backup == kNoServer;
  }));
}

std::string ShardPlaces::describe(ShardId shard) const {
  const Shard& s = shards_[shard];
  const auto name = [this](ServerId id) {
    return id >= servers_.size() ? "-" : servers_[id].name + (live(id) ? "" : " (gone)");
  };
  std::string text = fmt::format("shard {}: primary {}, backup {}{}", shard, name(s.place.primary),
                                 name(s.place.backup), s.lost ? ", lost" : "");
  if (s.busy)
    text += fmt::format(", {} of {} {}", step_name(s.doing), name(s.target),
                        s.step != 0 ? "under way" : "due");
  for (const auto& [key, stale] : stale_)
    if (key.second == shard) text += fmt::format(", {} has to forget it", name(key.first));
  return text;
}

uint32_t ShardPlaces::unserved() const {
  uint32_t count = 0;
  for (ShardId s = 0; s < shards_.size(); ++s) count += served(s) ? 0 : 1;
  return count;
}

uint32_t ShardPlaces::moving() const {
  return static_cast<uint32_t>(std::count_if(shards_.begin(), shards_.end(), [](const Shard& s) {
    return s.busy && s.doing != StepKind::kPromote && s.doing != StepKind::kDrop &&
           s.doing != StepKind::kRestore;
  }));
}

bool ShardPlaces::settled() const {
  if (!ranked_ || !stale_.empty()) return false;
  for (ShardId s = 0; s < shards_.size(); ++s) {
    const Shard& shard = shards_[s];
    const std::vector<ServerId>& ranks = ranks_[s];
    if (shard.busy || shard.lost || ranks.empty() || shard.place.primary != ranks[0]) return false;
    const bool two = options_.replicas > 1 && ranks.size() > 1;
    if (shard.place.backup != (two ? ranks[1] : kNoServer)) return false;
  }
  return true;
}

}  // namespace flux
