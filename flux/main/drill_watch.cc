#include "flux/main/drill_watch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace flux {
namespace {

constexpr double kRateWindow_s = 1.0;
constexpr double kBeforeWindow_s = 5.0;
constexpr double kSpeedShare = 0.8;
constexpr double kSeenLately_s = 1.0;

const WorkerStatus* find_worker(const JobStatus& status, const std::string& name) {
  for (const WorkerStatus& w : status.workers)
    if (w.name == name) return &w;
  return nullptr;
}

// The process of that name, and when it was last heard of; pid 0: none.
std::pair<int64_t, double> shown(const JobStatus& status, const RoleProcess& process) {
  if (process.role == "worker") {
    const WorkerStatus* found = find_worker(status, process.name);
    if (found != nullptr) return {found->pid, found->seen_s_ago};
    return {0, 0};
  }
  for (const ServerStatus& s : status.servers)
    if (s.name == process.name) return {s.pid, s.seen_s_ago};
  return {0, 0};
}

std::string longest_wait(const JobStatus& status) {
  const auto longest = std::max_element(
      status.waits.begin(), status.waits.end(),
      [](const WaitStatus& a, const WaitStatus& b) { return a.since_s < b.since_s; });
  return longest == status.waits.end() ? "" : longest->who + ": " + longest->what;
}

bool ends_victims(FaultKind kind) {
  return kind != FaultKind::kPause && kind != FaultKind::kPartition && kind != FaultKind::kScale;
}

// Before training, at the start of a job or of its successor.
bool beginning(const std::string& state) {
  return state == "starting" || state == "loading" || state == "reading";
}

// Until somebody heals it.
bool lasts(FaultKind kind) {
  return kind == FaultKind::kPause || kind == FaultKind::kPartition;
}

// Several at once: what no replica is left of comes from a checkpoint.
bool goes_back(const DrillFault& fault) {
  return fault.kind == FaultKind::kKillAll ||
         (fault.kind == FaultKind::kKill && fault.victims.size() > 1);
}

// Nobody of those who were killed is the coordinator.
bool anew(const DrillFault& fault, const std::optional<CoordinatorRecord>& record) {
  return record && std::none_of(fault.victims.begin(), fault.victims.end(),
                                [&](const RoleProcess& p) { return p.pid == record->pid; });
}

// By then members leave for reasons of their own.
bool ending(const std::string& state) {
  return state == "stopping" || state == "ending" || state == "complete" || state == "stopped" ||
         state == "failed";
}

int64_t wanted(const JobStatus& status, const DrillFault& fault) {
  return fault.scale == "workers" ? status.wanted_workers : status.wanted_servers;
}

bool about_the_same(const DrillFault& one, const DrillFault& other) {
  if (other.kind == FaultKind::kKillAll) return true;
  if (other.kind == FaultKind::kScale)
    return one.kind == FaultKind::kScale && one.scale == other.scale;
  return std::any_of(one.victims.begin(), one.victims.end(), [&](const RoleProcess& a) {
    return std::any_of(other.victims.begin(), other.victims.end(),
                       [&](const RoleProcess& b) { return a.role == b.role && a.name == b.name; });
  });
}

// After such a fault the status may show others no more: a new coordinator does not know them yet,
// or they were asked to leave.
bool moves_others(const DrillFault& fault) {
  return fault.kind == FaultKind::kScale ||
         std::any_of(fault.victims.begin(), fault.victims.end(),
                     [](const RoleProcess& p) { return p.role == "coordinator"; });
}

bool about_coordinator(const DrillFault& fault) {
  return fault.kind != FaultKind::kKillAll && fault.victims.size() == 1 &&
         fault.victims[0].role == "coordinator";
}

}  // namespace

void DrillWatch::say(double t, uint32_t fault, const std::string& what) {
  events_.push_back({t, fault, what});
}

void DrillWatch::leave_out(double t, uint32_t fault, const std::string& why) {
  left_out_.push_back(why);
  say(t, fault, "left out: " + why);
}

std::vector<DrillEvent> DrillWatch::take_new_events() {
  const auto first =
      events_.begin() + static_cast<std::ptrdiff_t>(std::exchange(told_, events_.size()));
  return {first, events_.end()};
}

void DrillWatch::supersede(const DrillFault& later) {
  for (DrillFault& earlier : faults_) {
    if (earlier.over()) continue;
    if (about_the_same(earlier, later)) {
      earlier.given_up = true;
      say(later.t, earlier.number,
          fmt::format("{}: not followed further, fault {} is about the same", earlier.label,
                      later.number));
    } else if (moves_others(later)) {
      earlier.unnoticeable = true;
    }
  }
}

void DrillWatch::add_fault(DrillFault fault) {
  supersede(fault);
  fault.rate_before = rate_between(fault.t - kBeforeWindow_s, fault.t);
  fault.applied_then = applied();
  fault.trained_least = trained();
  if (ends_victims(fault.kind) || fault.kind == FaultKind::kPause)  // which may be replaced
    for (const RoleProcess& victim : fault.victims) victims_.insert(victim.pid);
  say(fault.t, fault.number, fault.text);
  faults_.push_back(std::move(fault));
}

void DrillWatch::heal(uint32_t number, double t) {
  for (DrillFault& fault : faults_)
    if (fault.number == number && !fault.healed) {
      fault.healed = t;
      fault.applied_then = applied();
      fault.trained_least = trained();
      say(t, number, fault.label + ": over");
    }
}

void DrillWatch::end() {
  while (!samples_.empty() && !samples_.back().answered) samples_.pop_back();
  const double last = samples_.empty() ? 0 : samples_.back().t;
  std::erase_if(events_, [&](const DrillEvent& e) { return e.t > last && e.fault == 0; });
  told_ = std::min(told_, events_.size());
}

void DrillWatch::add_sample(double t, const std::optional<JobStatus>& status,
                            const std::optional<CoordinatorRecord>& record) {
  DrillSample now;
  now.t = t;
  now.applied = applied();
  now.trained = trained();
  if (status) {
    now.answered = true;
    now.state = status->state;
    now.applied = std::max(now.applied, status->examples_applied);
    now.trained = status->examples_run;
    now.workers = static_cast<uint32_t>(status->workers.size());
    now.servers = static_cast<uint32_t>(status->servers.size());
    now.term = status->epoch.term;
    now.map_version = status->epoch.n;
    now.wait = longest_wait(*status);
    watch_restarts(*status);
  }
  const bool was_there = !samples_.empty() && samples_.back().answered;
  if (was_there && !now.answered) say(t, 0, "the coordinator does not answer");
  if (!samples_.empty() && !was_there && now.answered) say(t, 0, "the coordinator answers");
  watch_stall(now);
  samples_.push_back(now);
  for (DrillFault& fault : faults_)
    if (!fault.over()) watch_fault(&fault, now, status, record);
}

// A stall is time in training in which nothing new was applied, repeats or not. While nobody
// answers nothing is seen; what was applied meanwhile is taken off at the speed of the whole drill.
void DrillWatch::watch_stall(const DrillSample& now) {
  if (!now.answered) {
    blind_ = true;
    return;
  }
  if (now.state != "training" && (!beginning(now.state) || !somebody_hurt())) {
    progress_t_ = -1;
    blind_ = false;
    return;
  }
  if (progress_t_ >= 0) {
    double stall = now.t - progress_t_;
    const bool moved = now.applied > progress_;
    if (moved && blind_) {
      const double rate = rate_between(0, progress_t_);
      if (rate > 0) stall -= static_cast<double>(now.applied - progress_) / rate;
    }
    double* worst = faults_.empty() ? &stall_before_ : &worst_stall_;
    *worst = std::max(*worst, stall);
    if (!moved) return;
  }
  progress_t_ = now.t;
  progress_ = now.applied;
  blind_ = false;
}

void DrillWatch::watch_restarts(const JobStatus& status) {
  for (const WorkerStatus& worker : status.workers) {
    const auto [it, first] = worker_pids_.try_emplace(worker.name, worker.pid);
    if (first || it->second == worker.pid) continue;
    ++restarts_;
    unasked_ += victims_.contains(it->second) ? 0 : 1;
    it->second = worker.pid;
  }
}

bool DrillWatch::noticed(const DrillFault& fault, const DrillSample& now,
                         const std::optional<JobStatus>& status,
                         const std::optional<CoordinatorRecord>& record) const {
  if (fault.unnoticeable || ending(now.state)) return false;
  if (fault.kind == FaultKind::kScale) return status && wanted(*status, fault) == fault.size;
  if (lasts(fault.kind) && fault.back_s) return false;  // what comes later is not of this
  return std::all_of(fault.victims.begin(), fault.victims.end(), [&](const RoleProcess& victim) {
    if (victim.role == "coordinator") return !now.answered || !record || record->pid != victim.pid;
    return status && shown(*status, victim).first != victim.pid;
  });
}

bool DrillWatch::back(const DrillFault& fault, const DrillSample& now,
                      const std::optional<JobStatus>& status,
                      const std::optional<CoordinatorRecord>& record) const {
  if (!now.answered || !status || (lasts(fault.kind) && !fault.healed)) return false;
  if (fault.kind == FaultKind::kScale)
    return fault.size == (fault.scale == "workers" ? now.workers : now.servers);
  return std::all_of(fault.victims.begin(), fault.victims.end(), [&](const RoleProcess& victim) {
    const bool other = ends_victims(fault.kind);  // another process than it was
    if (victim.role == "coordinator") return record && (!other || record->pid != victim.pid);
    const auto [pid, seen_s_ago] = shown(*status, victim);
    return pid != 0 && (!other || pid != victim.pid) && seen_s_ago < kSeenLately_s;
  });
}

bool DrillWatch::somebody_hurt() const {
  return std::any_of(faults_.begin(), faults_.end(),
                     [](const DrillFault& fault) { return !fault.recovered_s && !fault.given_up; });
}

// Workers may first repeat what was applied after the checkpoint that the job went back to: they
// train again before anything new is applied.
void DrillWatch::watch_training(DrillFault* fault, const DrillSample& now,
                                const std::optional<CoordinatorRecord>& record) {
  const bool begun = lasts(fault->kind) ? fault->healed.has_value() : fault->noticed_s.has_value();
  if (!begun || !now.answered) return;
  const double since = now.t - fault->healed.value_or(fault->t);
  const bool more = now.trained > fault->trained_least;
  fault->trained_least = std::min(fault->trained_least, now.trained);
  const bool first = now.state == "training" && now.trained > 0;  // of a job that began anew
  if (!fault->trains_s &&
      (fault->kind == FaultKind::kKillAll ? anew(*fault, record) && first : more)) {
    fault->trains_s = since;
    say(now.t, fault->number, fault->label + ": workers train again");
  }
  if (!fault->new_s && now.applied > fault->applied_then) {
    if (!fault->trains_s) fault->trains_s = since;  // what is new was trained
    fault->new_s = since;
    say(now.t, fault->number, fault->label + ": new examples are applied");
  }
}

// What recovery means: of a coordinator that it answers again; of a change of numbers that so many
// are there; of a pause or a partition that, once
// it is over, both ends are there and new examples are applied; of a loss that takes the job back
// to a checkpoint that workers train again; of everything else that the loss was noticed and new
// examples are applied without what was lost or with what replaced it.
void DrillWatch::watch_fault(DrillFault* fault, const DrillSample& now,
                             const std::optional<JobStatus>& status,
                             const std::optional<CoordinatorRecord>& record) {
  const bool lasting = lasts(fault->kind);
  const double since = now.t - fault->healed.value_or(fault->t);
  if (!fault->noticed_s && noticed(*fault, now, status, record)) {
    fault->noticed_s = now.t - fault->t;
    if (!fault->healed) fault->applied_then = now.applied;
    if (!fault->healed) fault->trained_least = now.trained;
    say(now.t, fault->number, fault->label + ": noticed");
  }
  if (!fault->back_s && (fault->noticed_s || lasting) && back(*fault, now, status, record)) {
    fault->back_s = since;
    const bool scaled = fault->kind == FaultKind::kScale;
    say(now.t, fault->number,
        fault->label + (scaled ? fmt::format(": {} are there", fault->size) : ": back"));
  }
  watch_training(fault, now, record);
  const bool by_back = about_coordinator(*fault) || fault->kind == FaultKind::kScale;
  const std::optional<double>& counts = by_back             ? fault->back_s
                                        : goes_back(*fault) ? fault->trains_s
                                                            : fault->new_s;
  if (!fault->recovered_s && counts && (!lasting || fault->back_s))
    fault->recovered_s = lasting ? std::max(*counts, *fault->back_s) : *counts;
  const double window = std::min(kRateWindow_s, since);
  if (!fault->speed_s && fault->new_s && since >= kRateWindow_s / 2 &&
      rate_between(now.t - window, now.t) >= kSpeedShare * fault->rate_before)
    fault->speed_s = since;
}

double DrillWatch::rate_between(double from, double to) const {
  const DrillSample* first = nullptr;
  const DrillSample* last = nullptr;
  for (auto it = samples_.rbegin(); it != samples_.rend() && it->t >= from; ++it) {
    if (!it->answered || it->t > to) continue;
    if (last == nullptr) last = &*it;
    first = &*it;
  }
  if (first == last) return 0;
  return static_cast<double>(last->applied - first->applied) / (last->t - first->t);
}

double DrillWatch::rate_before() const {
  return faults_.empty() ? 0 : rate_between(0, faults_.front().t);
}

double DrillWatch::rate_during() const {
  if (faults_.empty()) return 0;
  double end = 0;
  for (const DrillSample& sample : samples_)
    if (sample.state == "training") end = sample.t;
  return rate_between(faults_.front().t, end);
}

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {  // nearest rank
    const double rank = std::ceil(share * static_cast<double>(values.size()));
    return values[static_cast<size_t>(std::max(rank, 1.0)) - 1];
  };
  return {values.size(), at(0.5), at(0.99), values.back()};
}

}  // namespace flux
