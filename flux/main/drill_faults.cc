#include "flux/main/drill_faults.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include <sys/stat.h>

#include "flux/base/text.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

bool runs(const RoleProcess& process) {
  return signal_process(process, 0).is_ok();
}

std::string named(const std::vector<RoleProcess>& victims) {
  std::vector<std::string> words;
  for (const RoleProcess& victim : victims)
    words.push_back(fmt::format("{} (process {})", victim.name, victim.pid));
  return join(words, ", ");
}

// Messages from one to the other, under every name that a channel may know them by.
void add_drops(const RoleProcess& from, const RoleProcess& to, bool held,
               std::vector<Faults::Drop>* out) {
  out->push_back({from.name, to.name, held});
  if (!to.address.empty()) out->push_back({from.name, to.address, held});
  if (!from.address.empty()) out->push_back({from.address, to.name, held});
}

// Points that are passed only when another server is lost, and those of its successor.
bool while_moving(KillPoint point) {
  switch (point) {
    case KillPoint::kCopyBegin:
    case KillPoint::kCopyMid:
    case KillPoint::kCopyEnd:
    case KillPoint::kSeal:
    case KillPoint::kPromote:
    case KillPoint::kAssign:
      return true;
    default:
      return false;
  }
}
bool of_newcomer(KillPoint point) {
  return point == KillPoint::kInstallBegin || point == KillPoint::kInstallMid ||
         point == KillPoint::kInstallEnd;
}

// Processes look at the faults file every 50 ms; repair may be faster than that.
constexpr double kOrdersRead_s = 0.5;
// A supervisor that learns of a death within this time sees that it was ours.
constexpr double kStarvedTold_s = 2;

}  // namespace

FaultMaker::FaultMaker(FaultMakerOptions options, DrillWatch* watch)
    : options_(std::move(options)), watch_(watch) {}

FaultMaker::~FaultMaker() {
  heal_all(watch_->samples().empty() ? 0 : watch_->samples().back().t);
}

Status FaultMaker::make(const PlannedFault& planned, const std::vector<RoleProcess>& all,
                        double t) {
  DrillFault fault;
  fault.number = planned.number;
  fault.kind = planned.spec.kind;
  fault.label = planned.spec.label();
  fault.t = t;
  uint64_t draw = planned.draw;
  std::vector<RoleProcess> left = all;  // nobody twice in one fault
  for (const RoleChoice& choice : planned.spec.who) {
    FLUX_ASSIGN_OR_RETURN(const RoleProcess victim, choose(left, choice, draw));
    std::erase_if(left, [&](const RoleProcess& p) { return p.pid == victim.pid; });
    fault.victims.push_back(victim);
    draw = mix64(draw);
  }
  fault.text = fmt::format("{}: {}", planned.spec.text(), named(fault.victims));
  switch (planned.spec.kind) {
    case FaultKind::kKill:
      FLUX_RETURN_IF_ERROR(kill(fault));
      if (!planned.spec.lose_log) return Status::ok();
      if (!options_.folder) return invalid("where the coordinator's log is, is not known");
      return remove_all(join_path(parent_folder(options_.folder->path()), "coordinator.log"));
    case FaultKind::kPause:
      return pause(std::move(fault));
    case FaultKind::kOom:
      return oom(std::move(fault));
    case FaultKind::kPartition:
      return partition(std::move(fault), planned.spec.both_ways);
    case FaultKind::kDrain:
      return drain(std::move(fault));
    case FaultKind::kScale:
      return scale(planned, std::move(fault));
    case FaultKind::kKillPoint:
      return arm(planned, std::move(fault), all);
    case FaultKind::kKillAll:
      break;
  }
  return invalid("--kill all: only a job that the drill started (--run) can be started again");
}

Status FaultMaker::kill(const DrillFault& fault) {
  for (const RoleProcess& victim : fault.victims)
    FLUX_RETURN_IF_ERROR(signal_process(victim, 0));  // all of them or none
  for (const RoleProcess& victim : fault.victims) (void)signal_process(victim, SIGKILL);
  watch_->add_fault(fault);
  return Status::ok();
}

Status FaultMaker::pause(DrillFault fault) {
  FLUX_RETURN_IF_ERROR(signal_process(fault.victims[0], SIGSTOP));
  watch_->add_fault(fault);
  const double until = fault.t + options_.pause_s;
  lasting_.push_back({std::move(fault), until, {}});
  return Status::ok();
}

Status FaultMaker::oom(DrillFault fault) {
  const RoleProcess victim = fault.victims[0];
  const bool told = options_.folder && obeys_faults(victim);
  starving_.push_back({fault, {}, fault.t + options_.oom_wait_s});
  if (told) FLUX_RETURN_IF_ERROR(write_faults());  // before it can die
  auto done = take_memory(victim);
  if (!done.is_ok()) {
    starving_.pop_back();
    if (told) (void)write_faults();
    return done.status();
  }
  starving_.back().done = done.value();
  starving_.back().fault.text += ": " + done.value().how;
  watch_->say(fault.t, fault.number, "takes memory away: " + starving_.back().fault.text);
  return Status::ok();
}

// A process that asks for no more memory does not miss it.
bool FaultMaker::tick_starving(const Starving& starving, double t) {
  DrillFault fault = starving.fault;
  const RoleProcess& victim = fault.victims[0];
  const bool lives = runs(victim);
  if (lives && t < starving.until) return false;
  const bool asked = obeys_faults(victim);
  give_memory_back(victim, starving.done);
  if (!lives) {
    starved_.push_back({victim.pid, t + kStarvedTold_s});
    fault.t = t;
    watch_->add_fault(std::move(fault));
    return true;
  }
  watch_->leave_out(t, fault.number,
                    fmt::format("{} asked for no memory within {} s, so it did not end; it has its "
                                "memory back{}",
                                victim.name, options_.oom_wait_s,
                                asked ? "" : " (with flux run --drillable it would be told to)"));
  return true;
}

// One that has just ended is no mistake of the user's: another is chosen.
Status FaultMaker::check_listens(const RoleProcess& process) const {
  if (options_.folder && obeys_faults(process)) return Status::ok();
  FLUX_RETURN_IF_ERROR(signal_process(process, 0));
  return invalid(
      "{} does not listen to drills: start the job with flux run --drillable (and name its file or "
      "folder, not its address)",
      process.name);
}

Status FaultMaker::partition(DrillFault fault, bool both_ways) {
  for (const RoleProcess& end : fault.victims) FLUX_RETURN_IF_ERROR(check_listens(end));
  Lasting lasting;
  add_drops(fault.victims[0], fault.victims[1], !options_.vanish, &lasting.drops);
  if (both_ways) add_drops(fault.victims[1], fault.victims[0], !options_.vanish, &lasting.drops);
  lasting.fault = fault;
  lasting.until = fault.t + options_.partition_s;
  lasting_.push_back(lasting);
  FLUX_RETURN_IF_ERROR(write_faults());
  watch_->add_fault(std::move(fault));
  return Status::ok();
}

// A worker leaves when it is asked to; a server hands its shards over first.
Status FaultMaker::drain(DrillFault fault) {
  const RoleProcess victim = fault.victims[0];
  if (victim.role != "worker")
    return run_flux({"drain", options_.target, victim.name}, std::move(fault));
  FLUX_RETURN_IF_ERROR(signal_process(victim, SIGTERM));
  watch_->add_fault(std::move(fault));
  return Status::ok();
}

Status FaultMaker::scale(const PlannedFault& planned, DrillFault fault) {
  fault.text = fmt::format("scale to {} {}", planned.size, planned.spec.scale);
  fault.scale = planned.spec.scale;
  fault.size = planned.size;
  return run_flux(
      {"scale", options_.target, "--" + planned.spec.scale, std::to_string(planned.size)},
      std::move(fault));
}

Status FaultMaker::arm(const PlannedFault& planned, DrillFault fault,
                       const std::vector<RoleProcess>& all) {
  const RoleProcess victim = fault.victims[0];
  FLUX_RETURN_IF_ERROR(check_listens(victim));
  Armed armed;
  armed.newcomer = of_newcomer(planned.order.point);
  if (while_moving(planned.order.point)) {
    std::vector<RoleProcess> others = all;
    std::erase_if(others, [&](const RoleProcess& p) { return p.pid == victim.pid; });
    FLUX_ASSIGN_OR_RETURN(armed.provoked,
                          choose(others, {"server", std::nullopt}, mix64(planned.draw)));
    fault.label += ", moving";
  }
  if (armed.newcomer) {
    armed.provoked = victim;
    fault.label += ", newcomer";
  }
  fault.text = fmt::format("{} dies at {}:{}", victim.name, kill_point_name(planned.order.point),
                           planned.order.pass);
  watch_->say(fault.t, fault.number, "armed: " + fault.text);
  armed.until = fault.t + options_.at_wait_s;
  armed.fault = std::move(fault);
  if (armed.newcomer) {
    armed.orders.starts.push_back({victim.name, planned.order});
  } else {
    armed.orders.dies.push_back({victim.pid, planned.order});
  }
  if (armed.provoked) armed.provoke_at = armed.fault.t + kOrdersRead_s;
  armed_.push_back(std::move(armed));
  return write_faults();
}

void FaultMaker::tick_armed(Armed* armed, double t, bool* over) {
  if (armed->provoked && t >= armed->provoke_at) {
    (void)signal_process(*armed->provoked, SIGKILL);
    armed->provoked.reset();
    if (armed->newcomer) {  // its successor dies out of our sight
      armed->fault.t = t;
      watch_->add_fault(armed->fault);
    }
  }
  const bool died = !armed->newcomer && !runs(armed->fault.victims[0]);
  if (died) {
    armed->fault.t = t;
    watch_->add_fault(armed->fault);
  } else if (t > armed->until && !armed->newcomer) {
    watch_->leave_out(t, armed->fault.number,
                      armed->fault.text + ": the point was not passed in time");
  }
  *over = died || t > armed->until;
}

// A supervisor does not wait for ever for a process that is stopped.
bool FaultMaker::replaced(const Lasting& lasting) {
  return lasting.fault.kind == FaultKind::kPause && !runs(lasting.fault.victims[0]);
}

void FaultMaker::heal(const Lasting& lasting, double t) {
  if (lasting.drops.empty())
    for (const RoleProcess& victim : lasting.fault.victims) (void)signal_process(victim, SIGCONT);
  watch_->heal(lasting.fault.number, t);
}

void FaultMaker::tick(double t) {
  bool changed = false;
  for (size_t i = 0; i < lasting_.size();) {
    if (t < lasting_[i].until && !replaced(lasting_[i])) {
      ++i;
      continue;
    }
    const Lasting lasting = lasting_[i];
    lasting_.erase(lasting_.begin() + static_cast<std::ptrdiff_t>(i));
    changed = changed || !lasting.drops.empty();
    if (changed) (void)write_faults();
    heal(lasting, t);
  }
  for (size_t i = 0; i < armed_.size();) {
    bool over = false;
    tick_armed(&armed_[i], t, &over);
    if (!over) {
      ++i;
      continue;
    }
    armed_.erase(armed_.begin() + static_cast<std::ptrdiff_t>(i));
    (void)write_faults();
  }
  const size_t over =
      std::erase_if(starved_, [&](const Starved& one) { return t > one.until; }) +
      std::erase_if(starving_, [&](const Starving& one) { return tick_starving(one, t); });
  if (over > 0 && options_.folder) (void)write_faults();
  tick_helpers(t);
}

void FaultMaker::tick_helpers(double t) {
  for (const ProcessEnd& end : platform_.ended()) {
    auto helper = helpers_.extract(end.id);
    if (helper.empty()) continue;
    if (end.code == 0 && end.signal == 0) {
      watch_->add_fault(std::move(helper.mapped().fault));
    } else {
      watch_->leave_out(t, helper.mapped().fault.number,
                        fmt::format("{}: {}", helper.mapped().text, end.text()));
    }
  }
}

void FaultMaker::heal_all(double t) {
  const std::vector<Lasting> lasting = std::exchange(lasting_, {});
  const bool wrote = !lasting.empty() || !armed_.empty() || !starving_.empty() || !starved_.empty();
  armed_.clear();
  starved_.clear();
  if (wrote && options_.folder) (void)remove_all(options_.folder->faults_file());
  for (const Lasting& one : lasting) heal(one, t);
  for (const Starving& one : std::exchange(starving_, {}))
    give_memory_back(one.fault.victims[0], one.done);
}

Status FaultMaker::run_flux(std::vector<std::string> words, DrillFault fault) {
  words.insert(words.begin(), options_.program);
  const std::string text = join(words, " ");
  FLUX_ASSIGN_OR_RETURN(const ProcessId id,
                        platform_.start({fmt::format("helper-{}", helpers_.size()), words, ""}));
  helpers_[id] = {std::move(fault), text};
  return Status::ok();
}

Status FaultMaker::write_faults() const {
  Faults all;
  for (const Lasting& lasting : lasting_)
    all.drops.insert(all.drops.end(), lasting.drops.begin(), lasting.drops.end());
  for (const Armed& armed : armed_) {
    all.dies.insert(all.dies.end(), armed.orders.dies.begin(), armed.orders.dies.end());
    all.starts.insert(all.starts.end(), armed.orders.starts.begin(), armed.orders.starts.end());
  }
  for (const Starving& one : starving_) all.ooms.push_back(one.fault.victims[0].pid);
  for (const Starved& one : starved_) all.ooms.push_back(one.pid);
  const std::string text = faults_text(all);
  if (text.empty()) return remove_all(options_.folder->faults_file());
  return write_file_atomic(options_.folder->faults_file(), text);
}

}  // namespace flux
