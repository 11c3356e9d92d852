// Workers that join, report, leave, die.
#include <algorithm>
#include <utility>

#include "flux/base/text.h"
#include "flux/coordinator/job_state.h"

namespace flux {
namespace {
constexpr size_t kGoneMax = 4096;  // workers that are gone, for the summary
}

void JobMaster::State::join_worker(const JoinRequest& request,
                                   const std::function<void(Result<JoinReply>)>& done) {
  member_here(request.name);
  if (ended() || stopping_)
    return done(error(Code::kCancelled, "job {} is ending; nobody can join", plan_.name));
  if (!request.model.empty()) {
    std::vector<std::string> differences = model_differences(plan_.model, request.model);
    for (std::string& line : differences)  // as said of checkpoints and jobs
      for (const auto& [from, to] : {std::pair{"in the checkpoint", "at the coordinator"},
                                     std::pair{"in the job", "at the worker"}})
        if (const size_t at = line.find(from); at != std::string::npos)
          line.replace(at, std::string(from).size(), to);
    if (!differences.empty()) {
      say(fmt::format("refused {} ({}): it has another model: {}", request.name, request.host,
                      flux::join(differences, "; ")));
      return done(invalid("the coordinator of job {} has another model:\n  {}", plan_.name,
                          flux::join(differences, "\n  ")));
    }
  }
  if (!ready_for(request)) {
    early_.push_back({request, done, now()});
    return;
  }
  if (request.incarnation != 0 && request.incarnation != incarnation_)
    return done(
        error(Code::kStale, "that life of job {} is over; join as a new worker", plan_.name));
  const Membership::Joined joined = workers_members_.join(request.name, request.boot, now());
  if (joined.stale)
    return done(
        error(Code::kStale, "another process is {} of job {} now", request.name, plan_.name));
  if (joined.replaced)
    lose_worker(*joined.replaced, true, fmt::format("{} came back anew", request.name));
  member_here(request.name);
  if (!joined.again) {
    Worker& worker = workers_[joined.id];
    worker.info = request;
    worker.info.held.clear();
    worker.asked = now();
    worker.has_base = request.incarnation == 0;
    if (rounds_) rounds_->add_worker(joined.id, 1);
    workers_expected_.erase(request.name);
    log_member("worker", request.name, request.boot, joined.id);
    if (options_.announce_members)
      say(fmt::format("{} joined{} ({} thread{})", request.name,
                      request.incarnation != 0 ? " again" : "", request.threads,
                      request.threads == 1 ? "" : "s"));
  }
  count_workers();
  adopt_leases(joined.id, request);
  JoinReply reply;
  reply.worker = joined.id;
  reply.job = plan_.spec;
  reply.incarnation = incarnation_;
  reply.map = cluster_map();
  reply.report_every_ms = static_cast<uint32_t>(options_.report_every_ns / kMillisecond);
  done(std::move(reply));
  apply_scale();
  pump();
}

// The learning rate follows the number of workers, if the job says so.
void JobMaster::State::count_workers() {
  if (!lr_) lr_.emplace(plan_.lr, std::max(1U, options_.workers_wanted));
  if (takes_over()) return;  // they come back one by one
  lr_->workers(static_cast<uint32_t>(workers_.size()));
}

// So that the next coordinator goes on from here; about once a second while it moves.
void JobMaster::State::log_lr() {
  if (!lr_ || term_ == 0 || plan_.lr.lr == "none") return;
  count_workers();
  const bool jumped = lr_->state().workers != lr_logged_.workers;
  if (lr_->state() == lr_logged_ || (!jumped && now() - lr_logged_at_ < kSecond)) return;
  lr_logged_ = lr_->state();
  lr_logged_at_ = now();
  Decision decision;
  decision.kind = "lr";
  decision.term = term_;
  decision.lr = lr_logged_;
  log_decision(decision);
}

// Is there anything to do for it, and is it known what others do?
bool JobMaster::State::ready_for(const JoinRequest& request) const {
  if (!places_on_ || phase_ == Phase::kJoining || phase_ == Phase::kLoading) return false;
  return phase_ != Phase::kReading || request.held.empty();
}

// Leases that a coordinator before gave stay with who has them.
void JobMaster::State::adopt_leases(WorkerId id, const JoinRequest& request) {
  if (!queue_ || phase_ != Phase::kTraining) return;
  for (const HeldBlock& held : request.held) {
    if (held.evaluate) continue;  // tests are repeated from their start
    const bool mine = queue_->adopt(id, held.id, held.applied, now());
    if (!rounds_ || held.round.id == 0) continue;
    if (mine) {
      rounds_->adopt(id, held.lane, held.round, held.id);
    } else if (queue_->section() == BlockId{held.id.pass, held.id.phase, held.id.epoch, 0} &&
               queue_->state(held.id.block) == BlockState::kPending) {
      void_members({{held.round.id, held.id}});  // others have it by now
    }
  }
  if (queue_->all_applied()) verify_section();
}

void JobMaster::State::log_member(const char* kind, const std::string& name, uint64_t boot,
                                  uint64_t id, const char* why) {
  Decision decision;
  decision.kind = kind;
  decision.term = term_;
  decision.member = name;
  decision.boot = boot;
  decision.id = id;
  decision.why = why;
  log_decision(decision);
}

// Things that help the next coordinator; nothing waits for them.
void JobMaster::State::log_decision(const Decision& decision) {
  slowly<bool>(
      [log = DecisionLog(files_, in_output("coordinator.log")),
       decision]() mutable -> Result<bool> {
        FLUX_RETURN_IF_ERROR(log.append(decision));
        return true;
      },
      [this](const Result<bool>& logged) {
        if (!logged.is_ok()) say("warning: " + logged.status().message());
      });
}

// Workers that came before there was anything to do: held back as leases are.
void JobMaster::State::answer_early() {
  for (const EarlyJoin& early : std::exchange(early_, {})) {
    if (ready_for(early.request) || stopping_ || ended()) {
      join_worker(early.request, early.done);
    } else if (now() - early.since < options_.join_hold_ns) {
      early_.push_back(early);
    } else {
      JoinReply wait;
      wait.waits = wait_reason();
      early.done(std::move(wait));
    }
  }
}

void JobMaster::State::report_worker(WorkerId worker, const WorkerReport& report,
                                     const std::function<void(Result<ReportAnswer>)>& done) {
  const auto at = workers_.find(worker);
  if (at == workers_.end() || !workers_members_.renew(worker, now()))
    return done(
        error(Code::kStale, "worker {} is not a member of job {} any more", worker, plan_.name));
  Worker& w = at->second;
  if (!std::exchange(w.has_base, true)) {
    w.base = report;
    w.rate_examples = report.examples;
  }
  if (report.examples >= w.report.examples) {
    w.ahead = {report.ahead.begin(), report.ahead.end()};
    take_report(&w, report);
    w.report.ahead.clear();
  }
  if (now() - w.rate_time >= kSecond) {
    if (w.rate_time > 0)
      w.rate = static_cast<double>(w.report.examples - w.rate_examples) * 1e9 /
               static_cast<double>(now() - w.rate_time);
    w.rate_time = now();
    w.rate_examples = w.report.examples;
  }
  take_suspects({true, worker}, report.suspects);
  ReportAnswer answer;
  answer.stop = stopping_ || ended() || w.leaves;
  answer.map_version = places_ ? places_->version() : 0;
  done(answer);
}

void JobMaster::State::leave_worker(const LeaseRequest& last, const WorkerReport& report,
                                    const Status& why, const std::function<void(Status)>& done) {
  const auto at = workers_.find(last.worker);
  if (at == workers_.end()) return done(Status::ok());  // a repeat
  take_refused(last.refused);
  acknowledge(last.applied, last.evaluated);
  if (report.examples >= at->second.report.examples) {
    take_report(&at->second, report);
  }
  const std::string name = at->second.info.name;
  workers_members_.leave(last.worker);
  // Trouble with the data or the model is trouble for every worker; a lost connection is its own.
  const bool jobs_trouble = why.code() == Code::kInvalid || why.code() == Code::kCorrupt ||
                            why.code() == Code::kNotFound || why.code() == Code::kIo;
  if (!why.is_ok()) say(fmt::format("{} gave up: {}", name, why.message()));
  if (why.is_ok() && !stopping_ && !ended()) {
    if (options_.announce_members) say(fmt::format("{} left", name));
    // Asked to by a signal: it is not to be replaced, unless there were too many anyway.
    const auto stay = std::count_if(workers_.begin(), workers_.end(),
                                    [](const auto& one) { return !one.second.leaves; });
    member_leaves(at->second.info);
    if (!at->second.leaves && stay <= wanted_.workers) want_fewer(&wanted_.workers);
  }
  lose_worker(last.worker, false, why.is_ok() ? "" : why.message());
  done(Status::ok());
  if (jobs_trouble && phase_ == Phase::kEvaluating) {
    test_failed(why);
  } else if (jobs_trouble) {
    fail(why);
  }
  if (phase_ == Phase::kTraining && queue_ && queue_->all_applied()) verify_section();
  if (phase_ == Phase::kDraining) drained();
  if (phase_ == Phase::kEnding) left();
  pump();
}

void JobMaster::State::forget_slots(Worker* worker, const Status& why) {
  for (auto& [lane, slot] : worker->slots) {
    if (slot.answered) continue;
    slot.answered = true;
    std::exchange(slot.done, nullptr)(why);
  }
}

void JobMaster::State::take_report(Worker* worker, const WorkerReport& report) {
  const std::vector<PhaseReport>& before = worker->report.phases;
  for (uint32_t p = 0; p < report.phases.size(); ++p)
    if (report.phases[p].examples > (p < before.size() ? before[p].examples : 0))
      phase_at_hand_ = p;
  take_health(worker, report.health);
  worker->report = report;
  worker->report.health.clear();
  if (!report.metrics.empty()) worker->metrics = report.metrics;
  worker->report.metrics.clear();
}

void JobMaster::State::lose_worker(WorkerId id, bool died, const std::string& why) {
  const auto at = workers_.find(id);
  if (at == workers_.end()) return;
  Worker worker = std::move(at->second);
  workers_.erase(at);
  suspicions_.gone({true, id});
  count_workers();
  gone_.push_back({id, worker.info.name, worker.info.host, worker.info.pid, worker.info.threads, 0,
                   0, 0, since(worker.report, worker.base)});
  if (gone_.size() > kGoneMax) gone_.erase(gone_.begin());
  add_report(&left_, since(worker.report, worker.base));
  if (const auto told = ProgressiveSet::decode(worker.metrics); told.is_ok())
    left_metrics_.merge(told.value());
  log_member("worker_gone", worker.info.name, worker.info.boot, id);
  if (died) {
    ++workers_lost_;
    say(fmt::format("lost {}: {}; its blocks go to others", worker.info.name, why));
    member_lost(worker.info.name, worker.info.pid);
  }
  forget_slots(&worker,
               error(Code::kStale, "worker {} is not a member of job {} any more", id, plan_.name));
  std::erase_if(pending_rounds_, [id](const auto& given) { return given.first.first == id; });
  if (queue_) queue_->release(id, died, worker.ahead);
  if (test_queue_) test_queue_->release(id, false);
  if (rounds_) void_members(rounds_->remove_worker(id));
  skip_poisoned();
}

void JobMaster::State::void_members(const std::vector<SyncRounds::Voided>& voided) {
  for (const SyncRounds::Voided& v : voided) {
    voids_.push_back(v);
    tell_all(
        "a member of a round to be voided",
        [v](ServerAdminPort* port, AdminCall call, ServerAdminPort::Done done) {
          port->void_member(std::move(call), v.round, v.block, std::move(done));
        },
        [this](const Status& status) {
          if (!status.is_ok()) fail(status);
        });
  }
}

void JobMaster::State::worker_gone(const std::string& name, uint64_t boot, const std::string& why) {
  const Member* member = workers_members_.find(name);
  if (member == nullptr || member->boot != boot) return;
  const WorkerId id = member->id;
  workers_members_.leave(id);
  lose_worker(id, true, why);
  if (phase_ == Phase::kDraining) drained();
  pump();
}

void JobMaster::State::geometry_text(uint64_t hash,
                                     const std::function<void(Result<std::string>)>& done) {
  const auto at = geometry_texts_.find(hash);
  if (at == geometry_texts_.end())
    return done(error(Code::kStale, "the pass with the cut {:016x} is not open", hash));
  done(at->second);
}

}  // namespace flux
