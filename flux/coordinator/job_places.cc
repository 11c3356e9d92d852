// Steps of the planner carried out: promotions, copies, moves, restores.
#include <algorithm>
#include <utility>

#include "flux/coordinator/job_state.h"

namespace flux {
namespace {

constexpr TimeNs kTurnMinNs = 5 * kMillisecond;
constexpr size_t kVoidsMax = 256;

ReplicaRole role_after(StepKind kind) {
  switch (kind) {
    case StepKind::kFollow:
      return ReplicaRole::kBackup;
    case StepKind::kForget:
      return ReplicaRole::kNone;
    default:
      return ReplicaRole::kPrimary;
  }
}

// Of a checkpoint that was begun then; 0: before this coordinator.
std::string age_text(TimeNs now, TimeNs begun) {
  if (begun == 0) return "";
  return fmt::format(", {:.1f} s old", static_cast<double>(now - begun) * 1e-9);
}

ShardAssignment assignment_of(const PlaceStep& step) {
  ShardAssignment to{step.shard, step.epoch, role_after(step.kind), kNoServer, kAnyOp};
  if (step.kind == StepKind::kAttach || step.kind == StepKind::kSwitch) to.backup = step.other;
  if (step.kind == StepKind::kSwitch) to.at_op = step.op;
  return to;
}

bool was_taken(const PlaceStep& step, const ShardState& state) {
  if (step.kind == StepKind::kSeal) return state.sealed && state.epoch == step.epoch;
  if (step.kind == StepKind::kCopy) return true;
  if (step.kind == StepKind::kForget) return state.role == ReplicaRole::kNone;
  return state.role == role_after(step.kind) && state.epoch == step.epoch;
}

}  // namespace

void JobMaster::State::pump_places() {
  if (!places_on_ || phase_ == Phase::kEnded) return;
  std::map<ServerId, Steps> assigns, seals, restores;
  Steps copies;  // a call each: a shard has its backup as soon as its own copy is there
  for (const PlaceStep& step : places_->next(now())) {
    if (step.kind == StepKind::kCopy) {
      copies.push_back(step);
    } else if (step.kind == StepKind::kSeal) {
      seals[step.server].push_back(step);
    } else if (step.kind == StepKind::kRestore) {
      restores[step.server].push_back(step);
    } else {
      assigns[step.server].push_back(step);
    }
  }
  // Promotions and the like first: they are what people wait for.
  for (const auto& [server, steps] : assigns) assign_steps(server, steps);
  for (const auto& [server, steps] : seals) seal_steps(server, steps);
  for (const auto& [server, steps] : restores) restore_steps(server, steps);
  for (const PlaceStep& step : copies) copy_step(step);
  const std::optional<TimeNs> next = places_->next_time();
  if (!next || (places_due_ > now() && places_due_ <= *next)) return;
  places_due_ = std::max(*next, now() + kTurnMinNs);
  executor_->post(places_due_ - now(), guard([this] {
                    places_due_ = 0;
                    pump_places();
                  }));
}

void JobMaster::State::assign_steps(ServerId server, const Steps& all) {
  // Two things about one shard do not fit one call: the older comes first.
  std::map<ShardId, PlaceStep> now, later;
  for (const PlaceStep& step : all)
    if (!now.emplace(step.shard, step).second) later.emplace(step.shard, step);
  for (const auto& part : {now, later}) {
    if (part.empty()) continue;
    Steps steps;
    Assignments places;
    places.servers = addresses();
    for (const auto& [shard, step] : part) {
      steps.push_back(step);
      places.shards.push_back(assignment_of(step));
    }
    admin(server)->assign(make_call({}), std::move(places),
                          guard([this, steps](const Result<std::vector<ShardState>>& states) {
                            steps_answered(steps, states);
                          }));
  }
}

namespace {
std::vector<ShardId> shards_of(const std::vector<PlaceStep>& steps) {
  std::vector<ShardId> shards;
  for (const PlaceStep& step : steps) shards.push_back(step.shard);
  return shards;
}
}  // namespace

void JobMaster::State::seal_steps(ServerId server, const Steps& steps) {
  admin(server)->seal(make_call(shards_of(steps)),
                      guard([this, steps](const Result<std::vector<ShardState>>& states) {
                        steps_answered(steps, states);
                      }));
}

void JobMaster::State::copy_step(const PlaceStep& step) {
  admin(step.server)
      ->copy(make_call({step.shard}), step.other, servers_[step.other].info.address,
             guard([this, step](const Result<std::vector<ShardState>>& states) {
               steps_answered({step}, states);
             }));
}

void JobMaster::State::steps_answered(const Steps& steps,
                                      const Result<std::vector<ShardState>>& states) {
  if (phase_ == Phase::kEnded) return;
  if (!states.is_ok()) return steps_failed(steps, states.status());
  for (const PlaceStep& step : steps) {
    const auto at = std::find_if(states.value().begin(), states.value().end(),
                                 [&](const ShardState& s) { return s.shard == step.shard; });
    const bool known = at != states.value().end();
    const bool taken = known ? was_taken(step, *at) : step.kind == StepKind::kForget;
    const uint64_t op = known ? at->op : 0;
    const PlaceChange change =
        places_->ended(step.id, taken ? StepEnd::kDone : StepEnd::kRefused, op, now());
    place_changed(step, change);
    // Better than a replica that lacks what the newest checkpoint has.
    if (change.lossy && newest_ && op < newest_->shards[step.shard].op) places_->lose(step.shard);
  }
  served_again();
  pump_places();
}

void JobMaster::State::steps_failed(const Steps& steps, const Status& why) {
  if (why.code() == Code::kStale) check_term(why);
  const bool unknown = why.code() == Code::kUnavailable || why.code() == Code::kStale;
  if (!unknown && !steps.empty())
    say(fmt::format("warning: {} of shard {} at {}: {}", step_name(steps[0].kind), steps[0].shard,
                    server_name(steps[0].server), why.message()));
  // A primary that refuses under its own epoch has stepped down: a new one tells it to go on.
  if (why.code() == Code::kStale)
    for (const PlaceStep& step : steps)
      if (step.kind == StepKind::kCopy || step.kind == StepKind::kSeal) places_->renew(step.shard);
  end_steps(steps, unknown ? StepEnd::kUnknown : StepEnd::kRefused);
}

void JobMaster::State::end_steps(const Steps& steps, StepEnd end) {
  for (const PlaceStep& step : steps) places_->ended(step.id, end, 0, now());
  pump_places();
}

// A server obeys somebody else, or has forgotten the job. In the first case this process is over.
// `fatal`: in the other case too, but not for that reason.
void JobMaster::State::check_term(const Status& why, bool fatal) {
  slowly<bool>(
      [this, self = shared_from_this()]() -> Result<bool> {
        FLUX_RETURN_IF_ERROR(still_mine());
        return true;
      },
      [this, why, fatal](const Result<bool>& mine) {
        if (phase_ == Phase::kEnded) return;
        if (mine.status().code() == Code::kStale) return end(mine.status());
        if (fatal) give_up(why);
      });
}

void JobMaster::State::place_changed(const PlaceStep& step, const PlaceChange& change) {
  if (!change.route) return;
  ++epoch_changes_;
  if (change.primary && sync()) void_again(step.shard);
  if (!change.lossy) return;
  ++losses_;
  recount_ = true;
  lost_since_save_.insert(step.shard);
}

void JobMaster::State::served_again() {
  kick_asks();
  if (places_->unserved() == 0 && unserved_since_ != 0) {
    FailoverStatus& last = failovers_.back();
    last.seconds = static_cast<double>(now() - unserved_since_) * 1e-9;
    failover_max_s_ = std::max(failover_max_s_, last.seconds);
    unserved_since_ = 0;
    if (phase_ != Phase::kLoading)
      say(fmt::format("every shard is served again after {:.3f} s", last.seconds));
  }
  loaded_if();
  recount_if();
}

// A primary that was not there when members of rounds were voided does not know of it.
void JobMaster::State::void_again(ShardId shard) {
  if (voids_.size() > kVoidsMax) voids_.erase(voids_.begin(), voids_.end() - kVoidsMax);
  for (const SyncRounds::Voided& v : voids_)
    ask_shards(
        "a member of a round to be voided", {shard},
        [v](ServerAdminPort* port, AdminCall call, const AskDone& done) {
          port->void_member(std::move(call), v.round, v.block,
                            [done](const Status& status) { done(status, nullptr); });
        },
        [](const Status&) {});
}

// Shards may have lost what they said they have: what is left to do is computed anew, from the
// first section of the pass on.
void JobMaster::State::recount_if() {
  if (!recount_ || phase_ != Phase::kTraining || places_->unserved() > 0) return;
  recount_ = false;
  verifying_ = true;
  say("the queue is computed anew from the ledgers of all shards");
  look_again();
}

// A replica that was promoted for want of a better one may lack the pass and its verdicts, too.
// What is asked names the pass by value: it may be asked again when another pass is read already.
void JobMaster::State::look_again() {
  const uint64_t look = ++looks_;
  const uint64_t geometry = geometry_->hash();
  const auto then = [this, look](const Then& next) {
    return [this, look, next](const Status& status) {
      if (ended() || look != looks_) return;
      if (!status.is_ok()) return fail(status);
      next(status);
    };
  };
  const Then find = [this](const Status&) { find_section(0); };
  const Then mark = [this, then, find, geometry, look](const Status&) {
    const std::vector<BatchId> skipped = decided(Verdict::kSkipped);
    if (skipped.empty()) return find(Status::ok());
    tell_all(
        "verdicts",
        [skipped, geometry](ServerAdminPort* port, AdminCall call, ServerAdminPort::Done done) {
          port->mark(std::move(call), geometry, skipped, Verdict::kSkipped, std::move(done));
        },
        then(find), look);
  };
  tell_all(
      "the pass to be opened",
      [pass = pass_, geometry](ServerAdminPort* port, AdminCall call, ServerAdminPort::Done done) {
        port->open_pass(std::move(call), pass, geometry, std::move(done));
      },
      then(mark), look);
}

void JobMaster::State::restore_steps(ServerId server, const Steps& steps) {
  AdminCall load_call = make_call({});
  AdminCall call = load_call;
  const size_t closed = closed_.size();
  const uint64_t number = newest_ ? newest_->number : 0;
  LoadJob load;
  load.folder = checkpoint_folder_;
  load.number = newest_ ? newest_->number : 0;
  load.closed_below = static_cast<uint32_t>(newest_ ? newest_->closed.size() : 0);
  for (const PlaceStep& step : steps) {
    load_call.shards.push_back(step.shard);
    load_call.epochs.push_back({step.epoch.term, step.epoch.n - 1});
    call.shards.push_back(step.shard);
    call.epochs.push_back(step.epoch);
    load.shards.push_back(newest_ ? to_load(*newest_, step.shard) : ShardToLoad{step.shard, {}});
  }
  if (!newest_ && (!closed_.empty() || phase_ == Phase::kEnding)) {
    const Status lost =
        error(Code::kUnavailable, "{} shards are lost and there is no checkpoint to go on from",
              steps.size());
    return give_up(lost);
  }
  if (phase_ != Phase::kLoading || adopted_)
    say(fmt::format("{} shard(s) have no replica left: {} loads them from {}", steps.size(),
                    server_name(server),
                    newest_ ? store().path_of(newest_->number) + age_text(now(), checkpoint_time_)
                            : "nothing: there is no checkpoint yet, they begin anew"));
  admin(server)->load(std::move(load_call), std::move(load),
                      guard([this, server, steps, call, closed, number](const Status& status) {
                        const bool passes = status.is_ok() || status.code() == Code::kUnavailable ||
                                            status.code() == Code::kStale;
                        if (!passes && places_->served(steps[0].shard)) return;
                        // A newer one was committed meanwhile, and this one removed.
                        if (!passes && newest_ && newest_->number != number)
                          return end_steps(steps, StepEnd::kUnknown);
                        if (!passes && !servers_[server].gone)
                          return check_term(status.with_context(server_name(server)), true);
                        if (!status.is_ok()) return steps_failed(steps, status);
                        restore_assigned({server, steps, call, closed});
                      }));
}

void JobMaster::State::restore_assigned(const Restoring& r) {
  if (phase_ == Phase::kEnded || servers_[r.server].gone) return;
  Assignments places;
  places.servers = addresses();
  for (const PlaceStep& step : r.steps)
    places.shards.push_back({step.shard, step.epoch, ReplicaRole::kPrimary, kNoServer, kAnyOp});
  admin(r.server)->assign(
      make_call({}), std::move(places),
      guard([this, r](const Result<std::vector<ShardState>>& states) {
        if (phase_ == Phase::kEnded || servers_[r.server].gone) return;
        if (!states.is_ok()) return steps_failed(r.steps, states.status());
        for (const ShardState& state : states.value())
          if (state.role != ReplicaRole::kPrimary)
            return steps_failed(
                r.steps, error(Code::kUnavailable, "shard {} was not taken there", state.shard));
        if (!pass_open_) return restore_marked(r);
        admin(r.server)->open_pass(r.call, pass_, geometry_->hash(),
                                   guard([this, r](const Status& status) {
                                     if (!status.is_ok()) return steps_failed(r.steps, status);
                                     restore_marked(r);
                                   }));
      }));
}

// Verdicts that are decided hold for it, too; then workers may know of it.
void JobMaster::State::restore_marked(const Restoring& r) {
  if (phase_ == Phase::kEnded || servers_[r.server].gone) return;
  const auto finished = guard([this, r](const Status& status) {
    if (phase_ == Phase::kEnded) return;
    if (!status.is_ok()) return steps_failed(r.steps, status);
    // A pass was closed meanwhile: what was loaded is of before. Anew, from the newest manifest.
    if (r.closed != closed_.size()) return end_steps(r.steps, StepEnd::kUnknown);
    for (const PlaceStep& step : r.steps)
      place_changed(step, places_->ended(step.id, StepEnd::kDone, 0, now()));
    served_again();
    pump_places();
  });
  const std::vector<BatchId> skipped =
      pass_open_ ? decided(Verdict::kSkipped) : std::vector<BatchId>();
  if (skipped.empty()) return finished(Status::ok());
  admin(r.server)->mark(r.call, geometry_->hash(), skipped, Verdict::kSkipped, finished);
}

}  // namespace flux
