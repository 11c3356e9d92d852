// What servers hold of the job is adopted by a coordinator that starts while they do.
#include <algorithm>
#include <tuple>
#include <utility>

#include "flux/base/text.h"
#include "flux/coordinator/job_state.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

// Of two replicas of a shard, the one that knows more.
std::tuple<ShardEpoch, int, uint64_t> rank_of(const ShardState& state) {
  return {state.epoch, state.role == ReplicaRole::kPrimary ? 1 : 0, state.op};
}

}  // namespace

// The life of the job that was configured last, of those that servers hold; 0: none.
uint64_t JobMaster::State::held_incarnation() const {
  std::tuple<ShardEpoch, uint64_t> best{};
  uint64_t found = 0;
  for (const ServerEntry& server : servers_) {
    if (server.gone || server.held.incarnation == 0) continue;
    ShardEpoch newest;
    for (const ShardState& state : server.held.shards)
      if (state.complete) newest = std::max(newest, state.epoch);
    const std::tuple mine{newest, server.held.incarnation};
    if (newest == ShardEpoch{} || mine < best) continue;
    best = mine;
    found = server.held.incarnation;
  }
  return found;
}

// By shard, what knows most of it among the servers that are here; null: nobody here has it.
std::vector<const ShardState*> JobMaster::State::best_held(uint64_t incarnation) const {
  std::vector<const ShardState*> best(plan_.all_shards, nullptr);
  for (const ServerEntry& server : servers_) {
    if (server.gone || server.held.incarnation != incarnation) continue;
    for (const ShardState& state : server.held.shards) {
      if (state.shard >= best.size() || !state.complete) continue;
      const ShardState*& known = best[state.shard];
      if (known == nullptr || rank_of(*known) < rank_of(state)) known = &state;
    }
  }
  return best;
}

// A backup of which the primary is not here may have been dropped, and a primary of which the
// backup is not here may have been replaced by it: then others have what these lack.
bool JobMaster::State::known_to_be_newest(const ShardState* best, uint64_t incarnation) const {
  if (best == nullptr || best->role != ReplicaRole::kPrimary) return false;
  if (best->backup == kNoServer) return true;
  return best->backup < servers_.size() && !servers_[best->backup].gone &&
         servers_[best->backup].held.incarnation == incarnation;
}

// Without a log nobody knows who is to come. But where as many servers as the job wants hold a
// primary of every shard, and every backup those name, more would hold nothing that counts. Where
// something newer may be elsewhere, it is waited for as long as for any server that alone has a
// shard: going back to what is here, or to a checkpoint, costs more.
bool JobMaster::State::waits_without_log() const {
  const TimeNs waited = now() - started_;
  const uint64_t held = held_incarnation();
  if (held == 0) return waited < options_.takeover_lost_ns;
  const std::vector<const ShardState*> best = best_held(held);
  const auto newest = [&](const ShardState* one) { return known_to_be_newest(one, held); };
  const auto settled = [&](const ShardState* one) {
    return newest(one) && !one->sealed && (one->backup == kNoServer) == (plan_.replicas == 1);
  };
  if (waited >= options_.takeover_lost_ns)
    return waited < options_.last_replica_ns && !std::all_of(best.begin(), best.end(), newest);
  return servers_here() < options_.servers || !std::all_of(best.begin(), best.end(), settled);
}

bool JobMaster::State::waits_for_servers() const {
  if (log_lost_) return waits_without_log();
  return !servers_expected_.empty() && now() - started_ < options_.takeover_ns;
}

void JobMaster::State::servers_complete_if() {
  if (phase_ != Phase::kJoining || !folder_open_ || !arrivals_.empty()) return;
  if (waits_for_servers()) return;
  const uint64_t held = held_incarnation();
  if (held != 0) {
    incarnation_ = held;
    return adopt();
  }
  if (servers_here() >= options_.servers) place_and_open();
}

void JobMaster::State::adopt() {
  adopted_ = true;
  set_phase(Phase::kLoading);
  std::map<ShardId, std::vector<std::pair<ServerId, ShardState>>> found;
  std::vector<ServerId> strangers, renumbered;
  size_t holders = 0;
  for (ServerId id = 0; id < servers_.size(); ++id) {
    ServerEntry& server = servers_[id];
    if (server.gone) continue;
    if (server.held.incarnation != incarnation_) {
      strangers.push_back(id);
      continue;
    }
    ++holders;
    server.ready = true;
    if (server.held.self != id) renumbered.push_back(id);
    places_->joined(id, server.info.name);
    places_->draining(id, server.draining);
    for (const ShardState& state : server.held.shards)
      if (state.shard < plan_.all_shards) found[state.shard].emplace_back(id, state);
  }
  for (ShardId s = 0; s < plan_.all_shards; ++s) adopt_shard(s, found[s]);
  say(fmt::format(
      "took over job {} (term {}) from {} server(s) that hold it; {} of {} shards are "
      "served",
      plan_.name, term_, holders, plan_.all_shards - places_->unserved(), plan_.all_shards));
  places_on_ = true;
  takeover_until_ = now() + (sync() ? options_.member_lease_ns : 500 * kMillisecond);
  for (const ServerId id : strangers) open_on(id);
  for (const ServerId id : renumbered) open_on(id);
  pump_places();
  loaded_if();
}

void JobMaster::State::adopt_shard(ShardId shard,
                                   const std::vector<std::pair<ServerId, ShardState>>& found) {
  const ShardState* best = nullptr;
  ServerId server = kNoServer;
  for (const auto& [id, state] : found) {
    const bool member = state.role == ReplicaRole::kPrimary || state.role == ReplicaRole::kBackup;
    const bool behind = servers_[id].held.closed_below + 1 < closed_.size() ||
                        (newest_ && state.op < newest_->shards[shard].op);
    if (!state.complete || !member || behind) continue;
    if (best != nullptr && rank_of(state) < rank_of(*best)) continue;
    best = &state;
    server = id;
  }
  ServerId backup = kNoServer;
  if (best == nullptr) {
    places_->lose(shard);
  } else if (best->role == ReplicaRole::kBackup) {  // its primary is gone
    backup = server;
    places_->adopt(shard, {kNoServer, backup, best->epoch}, false, 0);
  } else {
    const auto second = std::find_if(found.begin(), found.end(), [&](const auto& other) {
      return other.first == best->backup && other.second.complete;
    });
    // Two servers may have had one number, from two coordinators: then it names nobody for sure.
    const auto numbered = [&](ServerId id) { return servers_[id].held.self == id; };
    const bool follows =
        second != found.end() && !best->sealed && numbered(server) && numbered(best->backup);
    if (follows) backup = best->backup;
    places_->adopt(shard, {server, backup, best->epoch}, true, best->op);
    if (best->sealed || (!follows && best->backup != kNoServer)) places_->renew(shard);
  }
  for (const auto& [id, state] : found)
    if (id != server && id != backup && state.role != ReplicaRole::kNone)
      places_->found_stale(id, shard);
}

void JobMaster::State::loaded_if() {
  if (phase_ != Phase::kLoading || !places_on_ || places_->unserved() > 0) return;
  loaded();
}

void JobMaster::State::loaded() {
  recount_ = false;  // everything is computed from the ledgers now
  set_phase(Phase::kReading);
  if (restored_ && !adopted_) {
    uint64_t rows = 0;
    for (uint32_t s = 0; s < plan_.sparse_shards; ++s) rows += restored_->shards[s].rows;
    say(fmt::format("resumed from {} of {}: {} pass{} closed, {} ({:.1f} s)", resumed_from_,
                    restored_->created, closed_.size(), closed_.size() == 1 ? "" : "es",
                    counted(rows, "row"), static_cast<double>(now() - started_) * 1e-9));
  }
  if (!stopped_before_.empty()) say(fmt::format("the last run was stopped by {}", stopped_before_));
  if (!adopted_ || closed_.empty()) return next_pass();
  const bool behind = std::any_of(servers_.begin(), servers_.end(), [&](const ServerEntry& s) {
    return !s.gone && s.held.incarnation == incarnation_ && s.held.closed_below < closed_.size();
  });
  if (!behind) return pass_closed();
  slowly<bool>(
      [this, self = shared_from_this()]() -> Result<bool> {
        FLUX_RETURN_IF_ERROR(read_closed_cut());
        return true;
      },
      [this](const Result<bool>& read) {
        if (ended()) return;
        if (!read.is_ok()) say("warning: " + read.status().message());
        check_closed(0);
      });
}

Status JobMaster::State::read_closed_cut() {
  const std::string path =
      join_path(in_output("geometry"), fmt::format("pass-{:05}.json", closed_.size() - 1));
  constexpr uint64_t kCutMax = 1ULL << 30;
  FLUX_ASSIGN_OR_RETURN(const std::string text, files_->read(path, kCutMax));
  FLUX_ASSIGN_OR_RETURN(Geometry cut, Geometry::from_json(text));
  if (cut.hash() != closed_.back().geometry)
    return error(Code::kCorrupt, "{} is not the cut of the pass that was closed", path);
  closed_cut_ = std::move(cut);
  return Status::ok();
}

// The coordinator before died between the manifest that closed a pass and telling the servers.
// Whoever has all of that pass goes on; others are loaded from the manifest.
void JobMaster::State::check_closed(uint32_t section) {
  const auto load_those = [this] {
    for (ShardId s = 0; s < plan_.all_shards; ++s) {
      const ServerId id = places_->place(s).primary;
      if (id < servers_.size() && servers_[id].held.closed_below < closed_.size()) places_->lose(s);
    }
    set_phase(Phase::kLoading);
    for (ServerEntry& server : servers_)
      server.held.closed_below = static_cast<uint32_t>(closed_.size());
    pump_places();
  };
  if (!closed_cut_) return load_those();
  if (section == closed_.back().repeats || section == plan_.schedule.sections()) {
    closed_cut_.reset();
    return pass_closed();
  }
  geometry_ = closed_cut_;
  ask_marked(plan_.schedule.section(static_cast<uint32_t>(closed_.size() - 1), section), false,
             [this, section, load_those](const Result<std::vector<uint32_t>>& marked) {
               if (ended()) return;
               if (!marked.is_ok()) return fail(marked.status());
               for (uint32_t b = 0; b < closed_cut_->blocks.size(); ++b) {
                 const uint32_t all = batch_mask(closed_cut_->batches_in(b));
                 if ((marked.value()[b] & all) != all) return load_those();
               }
               check_closed(section + 1);
             });
}

// Of this pass, as servers have it open; 0: they have not.
uint64_t JobMaster::State::open_geometry(uint32_t pass) const {
  for (const ServerEntry& server : servers_) {
    if (server.gone || !adopted_ || server.held.incarnation != incarnation_) continue;
    const auto at = server.held.passes.find(pass);
    if (at != server.held.passes.end()) return at->second;
  }
  return 0;
}

bool JobMaster::State::was_tested(uint32_t pass) const {
  return std::any_of(decisions_.begin(), decisions_.end(), [&](const Decision& d) {
    return d.kind == "tested" && d.pass == pass && d.geometry == closed_[pass].geometry;
  });
}

}  // namespace flux
