// What happens to servers and steps; shard_plan.cc has what is done next.
#include "flux/cluster/shard_places.h"

#include <algorithm>

#include "flux/base/check.h"
#include "flux/base/hash.h"

namespace flux {

const char* step_name(StepKind kind) {
  static constexpr const char* kNames[] = {"promote", "drop",   "copy",   "attach", "follow",
                                           "seal",    "switch", "forget", "restore"};
  return kNames[static_cast<size_t>(kind)];
}

ShardPlaces::ShardPlaces(uint32_t shards, uint64_t term, ShardPlacesOptions options)
    : term_(term), options_(options), shards_(shards), ranks_(shards) {}

void ShardPlaces::joined(ServerId server, const std::string& name) {
  if (server >= servers_.size()) servers_.resize(server + 1);
  servers_[server] = Server{name, hash_bytes(name), true, false, 0};
  ranked_ = false;
}

void ShardPlaces::lost(ServerId server, TimeNs now) {
  if (!live(server)) return;
  servers_[server].live = false;
  ranked_ = false;
  std::erase_if(stale_, [&](const auto& entry) { return entry.first.first == server; });
  std::erase_if(forgetting_, [&](const auto& entry) { return entry.second.first == server; });
  std::erase_if(avoid_, [&](const auto& entry) {
    return entry.first.first == server || entry.first.second == server;
  });
  for (ShardId s = 0; s < shards_.size(); ++s) on_lost(s, server, now);
}

void ShardPlaces::draining(ServerId server, bool on) {
  if (!live(server) || servers_[server].draining == on) return;
  servers_[server].draining = on;
  ranked_ = false;
}

void ShardPlaces::pin(ShardId shard, const std::string& name) {
  if (name.empty()) {
    pins_.erase(shard);
  } else {
    pins_[shard] = name;
  }
  ranked_ = false;
}

void ShardPlaces::suspected(ServerId primary, ServerId backup, TimeNs now) {
  bool found = false;
  for (ShardId s = 0; s < shards_.size(); ++s) {
    Shard& shard = shards_[s];
    if (shard.place.primary != primary || !live(primary)) continue;
    const bool follows = shard.busy && shard.doing == StepKind::kFollow && shard.target == backup;
    if (follows && !shard.sure && !shard.resolve) {
      abort_change(s, now);
      found = true;
    } else if (shard.place.backup == backup && !shard.renew) {
      const bool drops = shard.busy && shard.doing == StepKind::kDrop;
      const bool attaches = shard.busy && shard.doing == StepKind::kAttach;  // another one
      if (drops || attaches) continue;
      cancel(s);
      shard.renew = true;
      found = true;
    }
  }
  if (found) avoid(primary, backup, now);
}

bool ShardPlaces::avoided(ServerId a, ServerId b, TimeNs now) const {
  const auto at = avoid_.find({a, b});
  return at != avoid_.end() && now < at->second.until;
}

void ShardPlaces::avoid(ServerId a, ServerId b, TimeNs now) {
  constexpr uint32_t kDoublesMax = 4;
  Avoid& pair = avoid_[{a, b}];
  if (now < pair.until) return;
  pair.until = now + (options_.avoid_ns << std::min(pair.times, kDoublesMax));
  ++pair.times;
}

void ShardPlaces::place_all() {
  rank_servers();
  const ShardEpoch epoch = new_epoch();
  for (ShardId s = 0; s < shards_.size(); ++s) {
    const std::vector<ServerId>& ranks = ranks_[s];
    FLUX_CHECK(!ranks.empty(), "no server to place shards on");
    const bool two = options_.replicas > 1 && ranks.size() > 1;
    shards_[s] = Shard{};
    shards_[s].place = {ranks[0], two ? ranks[1] : kNoServer, epoch};
  }
  ++changes_;
}

void ShardPlaces::adopt(ShardId shard, const ShardPlace& place, bool unsure, uint64_t op) {
  Shard& s = shards_[shard];
  s = Shard{};
  s.place = place;
  ++changes_;
  if (!unsure || place.backup == kNoServer) return;
  // As if the primary had just taken it.
  s.place.backup = kNoServer;
  s.busy = true;
  s.doing = StepKind::kFollow;
  s.target = place.backup;
  s.epoch = place.epoch;
  s.op = op;
}

void ShardPlaces::found_stale(ServerId server, ShardId shard) {
  add_stale(server, shard);
}

void ShardPlaces::lose(ShardId shard) {
  Shard& s = shards_[shard];
  for (const ServerId server : {s.place.primary, s.place.backup, s.target, s.spare})
    add_stale(server, shard);
  cancel(shard);
  s.place.backup = kNoServer;
  s.renew = false;
  s.lost = true;
}

void ShardPlaces::add_stale(ServerId server, ShardId s) {
  if (server != kNoServer && live(server)) stale_.try_emplace({server, s});
}

void ShardPlaces::count_copy(const Shard& shard, bool begins) {
  const uint32_t step = begins ? 1U : ~0U;
  if (shard.doing == StepKind::kCopy) {
    copies_ += step;
    servers_[shard.place.primary].copies += step;
    servers_[shard.target].copies += step;
  }
  if (shard.doing == StepKind::kSeal || shard.doing == StepKind::kSwitch) switches_ += step;
}

void ShardPlaces::cancel(ShardId s) {
  Shard& shard = shards_[s];
  if (shard.busy) count_copy(shard, false);
  // A copy that goes on at its servers is to leave nothing behind.
  if (shard.busy && shard.doing == StepKind::kCopy && shard.step != 0) add_stale(shard.target, s);
  if (shard.step != 0) running_.erase(shard.step);
  shard.busy = shard.sure = shard.resolve = shard.lossy = false;
  shard.step = 0;
  shard.target = shard.spare = kNoServer;
  shard.tries = 0;
  shard.due = shard.until = 0;
}

void ShardPlaces::set_task(ShardId s, StepKind kind, ServerId target, TimeNs now) {
  cancel(s);
  Shard& shard = shards_[s];
  shard.busy = true;
  shard.doing = kind;
  shard.target = target;
  shard.op = 0;
  shard.due = now;
  shard.until = now + options_.settle_ns;
  const bool committed = kind == StepKind::kCopy || kind == StepKind::kSeal;
  shard.epoch = committed ? shard.place.epoch : new_epoch();
  count_copy(shard, true);
}

void ShardPlaces::retry(Shard* shard, TimeNs now) {
  constexpr uint32_t kDoublesMax = 10;
  const TimeNs wait = options_.retry_ns << std::min(shard->tries, kDoublesMax);
  ++shard->tries;
  shard->step = 0;
  shard->due = now + std::min(wait, options_.retry_max_ns);
}

void ShardPlaces::promote(ShardId s, ServerId server, bool lossy, TimeNs now) {
  Shard& shard = shards_[s];
  for (const ServerId other : {shard.place.primary, shard.place.backup, shard.target, shard.spare})
    if (other != server) add_stale(other, s);
  set_task(s, StepKind::kPromote, server, now);
  shard.lossy = lossy;
  shard.renew = false;
}

// The primary gets a newer epoch without a backup, whatever it has taken of the change before.
void ShardPlaces::abort_change(ShardId s, TimeNs now) {
  Shard& shard = shards_[s];
  for (const ServerId other : {shard.place.backup, shard.target, shard.spare})
    if (other != shard.place.primary) add_stale(other, s);
  set_task(s, StepKind::kDrop, shard.place.primary, now);
}

void ShardPlaces::primary_lost(ShardId s, TimeNs now) {
  Shard& shard = shards_[s];
  const StepKind doing = shard.doing;
  if (shard.busy && doing == StepKind::kFollow && !shard.sure) return follow_lost(s, now);
  // A drop under way may have made the primary acknowledge without its backup.
  const bool dropping = shard.busy && doing == StepKind::kDrop;
  if (live(shard.place.backup)) return promote(s, shard.place.backup, dropping, now);
  // The copy was complete when it was answered; what came after may be missing.
  if (shard.busy && doing == StepKind::kAttach && live(shard.target))
    return promote(s, shard.target, true, now);
  lose(s);
}

// The follower that was being attached has everything if it reached the primary's log head of the
// time when the epoch began; else it has acknowledged nothing, and the backup before has it all.
void ShardPlaces::follow_lost(ShardId s, TimeNs now) {
  Shard& shard = shards_[s];
  if (live(shard.target)) {
    if (shard.step != 0) running_.erase(shard.step);
    shard.step = 0;
    shard.resolve = true;
    shard.due = now;
    shard.until = now + options_.settle_ns;
  } else if (live(shard.spare)) {
    promote(s, shard.spare, true, now);
  } else {
    lose(s);
  }
}

void ShardPlaces::on_lost(ShardId s, ServerId server, TimeNs now) {
  Shard& shard = shards_[s];
  if (shard.lost) {
    if (shard.busy && shard.target == server) cancel(s);
    return;
  }
  const StepKind doing = shard.doing;
  if (shard.busy && shard.target == server && doing == StepKind::kPromote) return lose(s);
  if (shard.busy && shard.target == server && doing == StepKind::kFollow && shard.resolve)
    return live(shard.spare) ? promote(s, shard.spare, true, now) : lose(s);
  if (shard.place.primary == server) {
    if (shard.busy && doing == StepKind::kPromote) return;
    return primary_lost(s, now);
  }
  if (shard.spare == server) shard.spare = kNoServer;
  const bool pushes_on = doing == StepKind::kAttach || doing == StepKind::kDrop ||
                         doing == StepKind::kPromote || doing == StepKind::kRestore;
  if (shard.place.backup == server) {
    if (shard.busy && !pushes_on) cancel(s);  // repair() drops it
    return;
  }
  if (!shard.busy || shard.target != server) return;
  if (doing == StepKind::kCopy) {
    cancel(s);
  } else if (doing == StepKind::kAttach || doing == StepKind::kFollow) {
    abort_change(s, now);
  }
}

PlaceChange ShardPlaces::commit(ShardId s, ServerId primary, ServerId backup, ShardEpoch epoch) {
  Shard& shard = shards_[s];
  PlaceChange change;
  change.primary = shard.place.primary != primary || shard.lost;
  change.route = true;
  shard.place = {primary, backup, epoch};
  ++changes_;
  return change;
}

PlaceChange ShardPlaces::follow_done(ShardId s, uint64_t op, TimeNs now) {
  Shard& shard = shards_[s];
  const ServerId target = shard.target, spare = shard.spare;
  const bool has_all = shard.sure || op >= shard.op;
  if (shard.resolve) {
    const bool by_spare = !has_all && live(spare);
    promote(s, by_spare ? spare : target, !has_all && !by_spare, now);
    return {};
  }
  if (!has_all) {
    shard.tries = 0;  // it answers; the log goes on
    retry(&shard, now);
    if (now >= shard.until) abort_change(s, now);
    return {};
  }
  if (spare != target) add_stale(spare, s);
  cancel(s);
  shard.place.backup = target;
  return {};
}

PlaceChange ShardPlaces::step_done(ShardId s, uint64_t op, TimeNs now) {
  Shard& shard = shards_[s];
  const ShardPlace before = shard.place;
  const ShardEpoch epoch = shard.epoch;
  const ServerId target = shard.target;
  PlaceChange change;
  switch (shard.doing) {
    case StepKind::kPromote:
    case StepKind::kRestore:
      change = commit(s, target, kNoServer, epoch);
      change.promoted = true;
      change.lossy = shard.lossy || shard.doing == StepKind::kRestore;
      cancel(s);
      shard.lost = shard.renew = false;
      break;
    case StepKind::kDrop:
      add_stale(before.backup, s);
      change = commit(s, before.primary, kNoServer, epoch);
      cancel(s);
      shard.renew = false;
      break;
    case StepKind::kCopy:
      set_task(s, StepKind::kAttach, target, now);
      break;
    case StepKind::kAttach:
      change = commit(s, before.primary, kNoServer, epoch);
      set_task(s, StepKind::kFollow, target, now);
      shard.epoch = epoch;
      shard.op = op;
      shard.spare = before.backup != target && live(before.backup) ? before.backup : kNoServer;
      break;
    case StepKind::kFollow:
      return follow_done(s, op, now);
    case StepKind::kSeal:
      set_task(s, StepKind::kSwitch, target, now);
      shard.op = op;
      break;
    case StepKind::kSwitch:
      // The one before is sealed at that very operation: it has everything.
      change = commit(s, target, before.primary, epoch);
      set_task(s, StepKind::kFollow, before.primary, now);
      shard.epoch = epoch;
      shard.sure = true;
      break;
    case StepKind::kForget:
      break;
  }
  return change;
}

void ShardPlaces::step_refused(ShardId s, TimeNs now) {
  Shard& shard = shards_[s];
  const ServerId target = shard.target;
  switch (shard.doing) {
    case StepKind::kPromote:  // nothing of use is there
      lose(s);
      break;
    case StepKind::kDrop:
    case StepKind::kAttach:  // the primary has not what it should have
      primary_lost(s, now);
      break;
    case StepKind::kCopy:
      avoid(shard.place.primary, target, now);
      add_stale(target, s);
      cancel(s);
      break;
    case StepKind::kFollow:
      if (shard.resolve) return live(shard.spare) ? promote(s, shard.spare, false, now) : lose(s);
      avoid(shard.place.primary, target, now);
      abort_change(s, now);
      break;
    case StepKind::kSeal:
      abort_change(s, now);
      break;
    case StepKind::kSwitch:  // its log head is not there yet
      shard.tries = 0;
      retry(&shard, now);
      if (now >= shard.until) abort_change(s, now);
      break;
    case StepKind::kRestore:
      step_unknown(s, now);
      break;
    case StepKind::kForget:
      break;
  }
}

void ShardPlaces::step_unknown(ShardId s, TimeNs now) {
  Shard& shard = shards_[s];
  const ServerId target = shard.target;
  switch (shard.doing) {
    case StepKind::kCopy:
      avoid(shard.place.primary, target, now);
      add_stale(target, s);
      cancel(s);
      return;
    case StepKind::kSeal:
    case StepKind::kSwitch:
    case StepKind::kFollow:
      if (now >= shard.until && !shard.resolve) {
        if (shard.doing == StepKind::kFollow) avoid(shard.place.primary, target, now);
        return abort_change(s, now);
      }
      break;
    case StepKind::kRestore: {  // perhaps elsewhere, under other epochs
      const uint32_t tries = shard.tries;
      add_stale(target, s);
      set_task(s, StepKind::kRestore, target, now);
      shard.tries = tries;
      break;
    }
    default:
      break;
  }
  retry(&shard, now);
}

PlaceChange ShardPlaces::ended(uint64_t step, StepEnd end, uint64_t op, TimeNs now) {
  if (const auto forget = forgetting_.find(step); forget != forgetting_.end()) {
    const Key key = forget->second;
    forgetting_.erase(forget);
    const auto at = stale_.find(key);
    if (at == stale_.end()) return {};
    if (end != StepEnd::kUnknown) {
      stale_.erase(at);
    } else {
      at->second.step = 0;
      at->second.due = now + std::min(options_.retry_ns << std::min(at->second.tries, 10U),
                                      options_.retry_max_ns);
      ++at->second.tries;
    }
    return {};
  }
  const auto at = running_.find(step);
  if (at == running_.end()) return {};
  const ShardId s = at->second;
  running_.erase(at);
  shards_[s].step = 0;
  if (end == StepEnd::kDone) return step_done(s, op, now);
  if (end == StepEnd::kRefused) step_refused(s, now);
  if (end == StepEnd::kUnknown) step_unknown(s, now);
  return {};
}

}  // namespace flux
