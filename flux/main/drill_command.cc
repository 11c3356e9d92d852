// `flux drill`: faults on purpose against a real job, and the account of what came of them.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>
#include <utility>

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flux/base/text.h"
#include "flux/main/commands.h"
#include "flux/main/drill_faults.h"
#include "flux/main/drill_plan.h"
#include "flux/main/drill_report.h"
#include "flux/main/drill_sampler.h"
#include "flux/main/drill_watch.h"
#include "flux/main/job_roles.h"
#include "flux/main/output_lock.h"
#include "flux/main/stop_signal.h"
#include "flux/platform/local_platform.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

constexpr int kTickMs = 10;
constexpr double kGone_s = 2;             // a job that is gone so long has ended
constexpr double kSilence_s = 60;         // one that says nothing so long is given up
constexpr double kVictim_s = 10;          // a fault waits so long for whom it is about
constexpr double kSettle_s = 30;          // --no-wait: for the last fault to be repaired
constexpr TimeNs kBegin = 300 * kSecond;  // a job that does not train so long after its start

std::string own_program() {
  std::string path(4096, '\0');
  const ssize_t n = ::readlink("/proc/self/exe", path.data(), path.size());
  path.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return path;
}

Result<DrillPlanOptions> plan_options(const DrillArguments& a) {
  using Parse = Result<FaultSpec> (*)(const std::string&);
  const std::pair<const std::vector<std::string>*, Parse> flags[] = {
      {&a.kill, parse_kill},   {&a.pause, parse_pause},
      {&a.oom, parse_oom},     {&a.partition, parse_partition},
      {&a.drain, parse_drain}, {&a.scale, parse_scale},
      {&a.at, parse_at}};
  DrillPlanOptions options;
  for (const auto& [words, parse] : flags)
    for (const std::string& word : *words) {
      FLUX_ASSIGN_OR_RETURN(FaultSpec spec, parse(word));
      if (spec.kind == FaultKind::kKillAll && !a.run)
        return invalid("--kill all: only a job that the drill starts (--run) can be started again");
      options.specs.push_back(std::move(spec));
    }
  if (options.specs.empty())
    return invalid(
        "no fault is asked for: give --kill, --pause, --oom, --partition, --drain, "
        "--scale or --at");
  FLUX_ASSIGN_OR_RETURN(options.every_ns, parse_duration("--every", a.every));
  if (!a.for_text.empty()) {
    FLUX_ASSIGN_OR_RETURN(options.for_ns, parse_duration("--for", a.for_text));
  }
  options.times = a.times;
  options.jitter = a.jitter;
  options.pass_max = a.pass_max;
  options.seed = a.seed;
  if (a.run) {
    options.workers = a.workers;
    options.servers = a.servers;
  }
  if (!DrillPlan(options).next())
    return invalid("--for {}: it is over before the first fault, which comes after --every {}",
                   a.for_text, a.every);
  return options;
}

std::string plan_text(const DrillArguments& a, const DrillPlanOptions& plan) {
  std::vector<std::pair<std::string, size_t>> kinds;  // how often in a row
  for (const FaultSpec& spec : plan.specs) {
    if (kinds.empty() || kinds.back().first != spec.text()) kinds.emplace_back(spec.text(), 0);
    ++kinds.back().second;
  }
  std::vector<std::string> words;
  for (const auto& [text, times] : kinds)
    words.push_back(times == 1 ? text : fmt::format("{} x {}", times, text));
  return fmt::format("{} every {}", join(words, ", "), a.every);
}

class Drill {
 public:
  explicit Drill(const DrillArguments& arguments) : a_(arguments), stop_(install_stop_signal()) {}

  Result<int> run() {
    FLUX_RETURN_IF_ERROR(prepare());
    if (a_.run) FLUX_RETURN_IF_ERROR(start_job());
    sampler_ = std::make_unique<DrillSampler>(target_);
    if (child_pid_ != 0) sampler_->only_of(child_pid_);
    while (!ended_) {
      take_samples();
      watch_job();
      if (begin_ != 0 && !ended_) {
        FLUX_RETURN_IF_ERROR(make_faults());
        faults_->tick(now_s());
      }
      sampler_->hurry(begin_ != 0 && being_timed());
      tell();
      if (!ended_) ::poll(nullptr, 0, kTickMs);
    }
    return finish();
  }

 private:
  Status prepare() {
    FLUX_ASSIGN_OR_RETURN(plan_options_, plan_options(a_));
    plan_ = std::make_unique<DrillPlan>(plan_options_);
    target_ = a_.target;
    if (a_.run) {
      FLUX_ASSIGN_OR_RETURN(const JobSpec spec, read_spec(a_.target.target, a_.target.sets));
      FLUX_ASSIGN_OR_RETURN(const Job job, parse_spec(spec));
      if (job.output.empty())
        return invalid("{}: no output folder; add 'output: DIR' or --set output=DIR",
                       a_.target.target);
      output_ = job.output;
      FLUX_RETURN_IF_ERROR(runs_not_yet());
    } else {
      FLUX_ASSIGN_OR_RETURN(const JobTarget found, find_target(a_.target, true));
      FLUX_RETURN_IF_ERROR(ask_status(found).status());
      if (found.folder) output_ = parent_folder(found.folder->path());
    }
    if (!output_.empty()) target_.target = output_;
    if (output_.empty() && a_.out.empty())
      return invalid("{}: where this job writes is not known; give --out DIR for the drill's files",
                     a_.target.target);
    if (!a_.baseline.empty()) {
      FLUX_ASSIGN_OR_RETURN(baseline_, read_summary(a_.baseline));
    }
    FLUX_RETURN_IF_ERROR(make_fault_maker());
    return take_place();
  }

  // A job that runs is drilled as it runs; nothing of it may be touched by another start.
  Status runs_not_yet() const {
    std::string who = OutputLock::holder(output_);  // of its coordinator, or of one process alone
    if (who.empty()) who = OutputLock::holder(ClusterFolder(output_).path());  // its supervisor
    if (who.empty()) return Status::ok();
    return invalid(
        "{}: runs already (process {} holds {}); drill it as it runs: the same command without "
        "--run, or stop it first: flux stop {}",
        a_.target.target, who, output_, output_);
  }

  // The first things that are written: whatever is wrong with the places is said before the job.
  Status take_place() {
    if (!output_.empty()) {
      FLUX_ASSIGN_OR_RETURN(lock_, OutputLock::take_for_drill(output_));
    }
    const std::string probe = join_path(folder(), ".drill.probe");
    Status written = make_folders(folder());
    if (written.is_ok()) written = write_file_atomic(probe, "");
    if (written.is_ok()) written = remove_all(probe);
    if (!written.is_ok())
      return invalid("--out {}: the drill cannot write there: {}", folder(), written.message());
    return Status::ok();
  }

  std::string folder() const { return a_.out.empty() ? output_ : a_.out; }

  Status make_fault_maker() {
    FaultMakerOptions options;
    const auto seconds = [](TimeNs ns) { return static_cast<double>(ns) * 1e-9; };
    FLUX_ASSIGN_OR_RETURN(const TimeNs pause, parse_duration("--pause-for", a_.pause_for));
    FLUX_ASSIGN_OR_RETURN(const TimeNs partition,
                          parse_duration("--partition-for", a_.partition_for));
    FLUX_ASSIGN_OR_RETURN(const TimeNs at_wait, parse_duration("--at-wait", a_.at_wait));
    options.pause_s = seconds(pause);
    options.partition_s = seconds(partition);
    options.at_wait_s = seconds(at_wait);
    options.vanish = a_.vanish;
    if (!output_.empty()) options.folder = ClusterFolder(output_);
    options.program = own_program();
    options.target = target_.target;
    faults_ = std::make_unique<FaultMaker>(options, &watch_);
    return Status::ok();
  }

  Status start_job() {
    std::vector<std::string> words = {own_program(),
                                      "run",
                                      a_.target.target,
                                      "--servers",
                                      std::to_string(a_.servers),
                                      "--workers",
                                      std::to_string(a_.workers),
                                      "--drillable"};
    for (const std::string& set : a_.target.sets) words.insert(words.end(), {"--set", set});
    if (a_.threads >= 0) words.insert(words.end(), {"--threads", std::to_string(a_.threads)});
    if (a_.fresh && !restarted_) words.emplace_back("--fresh");
    FLUX_ASSIGN_OR_RETURN(child_, platform_.start({"run", words, a_.job_log}));
    for (const ProcessInfo& info : platform_.running())
      if (info.id == *child_) child_pid_ = info.pid;
    if (sampler_) sampler_->only_of(child_pid_);
    if (started_ == 0) started_ = steady_now_ns();
    return Status::ok();
  }

  double now_s() const { return seconds_of(steady_now_ns()); }
  double seconds_of(TimeNs at) const {
    return begin_ == 0 ? 0 : static_cast<double>(at - begin_) * 1e-9;
  }

  void take_samples() {
    for (const StatusSample& sample : sampler_->take()) {
      if (sample.status) {
        last_ = *sample.status;
        job_ = last_.job;
        total_ = std::max(total_, last_.examples_total);
        answered_ = sample.at;
      }
      if (sample.record) record_ = sample.record;
      gone_since_ = !sample.gone ? 0 : gone_since_ != 0 ? gone_since_ : sample.at;
      if (begin_ == 0 && sample.status && last_.state == "training") begin_ = sample.at;
      if (begin_ != 0) watch_.add_sample(seconds_of(sample.at), sample.status, record_);
    }
  }

  // Whether the job has come to its end, or the person does not want to go on.
  void watch_job() {
    const TimeNs now = steady_now_ns();
    for (const ProcessEnd& end : platform_.ended())
      if (child_ == end.id) child_ended(end);
    if (stop_->load()) {
      interrupted_ = true;
      end("running");
    }
    if (a_.run && begin_ == 0 && now - started_ > kBegin) end("does not begin");
    if (!a_.run && gone_since_ != 0 && now - gone_since_ > to_ns(kGone_s)) end("gone");
    if (!a_.run && answered_ != 0 && now - answered_ > to_ns(kSilence_s)) end("silent");
    if (a_.no_wait && plan_over_ && settled()) end("running");
  }

  static TimeNs to_ns(double s) { return static_cast<TimeNs>(s * static_cast<double>(kSecond)); }

  void child_ended(const ProcessEnd& end_of_child) {
    child_.reset();
    if (to_restart_) {
      to_restart_ = false;
      restarted_ = true;
      failure_ = start_job();
      if (!failure_.is_ok()) end("failed");
      return;
    }
    child_code_ = end_of_child.signal != 0 ? 1 : end_of_child.code;
    end(end_of_child.text());
  }

  void end(const std::string& how) {
    if (!ended_) how_ = how;
    ended_ = true;
  }

  bool settled() const {
    const auto& all = watch_.faults();
    if (faults_->anything_lasts()) return false;
    return all.empty() || now_s() - all.back().t > kSettle_s ||
           std::all_of(all.begin(), all.end(), [](const DrillFault& f) { return f.over(); });
  }

  bool being_timed() const {
    const auto& all = watch_.faults();
    return std::any_of(all.rbegin(), all.rend(), [&](const DrillFault& f) {
      return !f.over() && now_s() - f.healed.value_or(f.t) < kSettle_s;
    });
  }

  Status make_faults() {
    if (!next_ && !plan_over_) {
      next_ = plan_->next();
      if (!next_) plan_over_ = true;
    }
    if (next_ && plan_options_.for_ns != 0 && clock_.due(*next_) > plan_options_.for_ns) {
      next_.reset();
      plan_over_ = true;
    }
    if (!next_ || steady_now_ns() < begin_ + clock_.due(*next_) || last_.state != "training" ||
        (a_.run && !child_))
      return Status::ok();
    const std::vector<RoleProcess> all = processes_of(last_, record_ ? &*record_ : nullptr);
    const Status made = next_->spec.kind == FaultKind::kKillAll
                            ? kill_all(*next_, all)
                            : faults_->make(*next_, all, now_s());
    if (made.code() != Code::kNotFound) {
      fault_passed();
      return made;
    }
    if (waits_since_ == 0) waits_since_ = steady_now_ns();
    waits_for_ = made.message();
    if (steady_now_ns() - waits_since_ < to_ns(kVictim_s)) return Status::ok();  // again soon
    watch_.leave_out(now_s(), next_->number, made.message());
    fault_passed();
    return Status::ok();
  }

  void fault_passed() {
    clock_.passed(*next_, steady_now_ns() - begin_);
    next_.reset();
    waits_since_ = 0;
    waits_for_.clear();
  }

  Status kill_all(const PlannedFault& planned, const std::vector<RoleProcess>& all) {
    // The successor must have trained, else there is nothing to kill yet.
    if (record_ && record_->supervisor != child_pid_) return error(Code::kNotFound, "not begun");
    DrillFault fault;
    fault.number = planned.number;
    fault.kind = planned.spec.kind;
    fault.label = planned.spec.label();
    fault.text = fmt::format("kill all {} processes and the supervisor", all.size());
    fault.victims = all;
    platform_.kill(*child_);  // first: nobody may be started again
    for (const RoleProcess& process : all) (void)signal_process(process, SIGKILL);
    fault.t = now_s();
    watch_.add_fault(std::move(fault));
    to_restart_ = true;
    return Status::ok();
  }

  void tell() {
    for (const DrillEvent& event : watch_.take_new_events()) {
      if (a_.quiet) continue;
      fmt::print("drill {:8.2f} s  {}{}\n", event.t,
                 event.fault != 0 ? fmt::format("fault {}: ", event.fault) : "", event.what);
    }
    std::fflush(stdout);
  }

  Result<int> finish() {
    faults_->heal_all(now_s());
    sampler_.reset();
    if (!interrupted_ && how_ != "running") watch_.end();
    if (child_ && interrupted_) stop_child();
    tell();
    if (!failure_.is_ok()) return failure_;
    DrillReport report;
    report.job = job_;
    report.seed = a_.seed;
    report.plan = plan_text(a_, plan_options_);
    report.baseline = baseline_;
    report.examples_total = total_;
    report.watch = &watch_;
    report.summary = fresh_summary();
    report.end = report.summary ? report.summary->state : how_;
    FLUX_RETURN_IF_ERROR(write_drill(report, folder()));
    fmt::print("\n{}\n{}", recovery_table(report), drill_line(report));
    const std::vector<std::string>& left_out = watch_.left_out();
    if (!left_out.empty())
      fmt::print("\nleft out {}, the last: {}", left_out.size(), left_out.back());
    fmt::print("\n{} and {}\n", join_path(folder(), "drill.json"),
               join_path(folder(), "timeline.svg"));
    return code_of(report);
  }

  // The job ends with a checkpoint, as after Ctrl-C.
  void stop_child() {
    platform_.ask_to_stop(*child_);
    while (child_) {
      for (const ProcessEnd& end : platform_.ended())
        if (child_ == end.id) child_.reset();
      ::poll(nullptr, 0, kTickMs);
    }
  }

  // The job's summary, if it was written since the drill began.
  std::optional<DrilledSummary> fresh_summary() const {
    if (output_.empty()) return std::nullopt;
    const std::string path = join_path(output_, "summary.json");
    struct stat found {};
    if (::stat(path.c_str(), &found) != 0 || found.st_mtim.tv_sec < wall_) return std::nullopt;
    auto summary = read_summary(path);
    if (!summary.is_ok()) return std::nullopt;
    return std::move(summary).value();
  }

  Result<int> code_of(const DrillReport& report) const {
    if (interrupted_) return 130;
    if (a_.run && child_code_ != 0) {
      fmt::print(stderr, "flux: the job ended with {}\n", how_);
      return child_code_;
    }
    if (report.summary && !report.summary->exact())
      return error(Code::kUnavailable, "the counters are not exact: lost {}, doubled {}",
                   report.summary->lost, report.summary->doubled);
    if (watch_.faults().empty())
      return error(Code::kUnavailable, "{}", no_fault_text(no_fault(), watch_));
    if (!report.summary && how_ != "running")
      return error(Code::kUnavailable, "the job has not come to its end: {}; see flux logs {}",
                   how_, target_.target);
    return 0;
  }

  NoFault no_fault() const {
    NoFault facts;
    facts.trained = begin_ != 0;
    facts.complete = a_.run && child_code_ == 0;
    for (const DrillSample& sample : watch_.samples())
      if (sample.state == "training") facts.trained_s = sample.t;
    facts.waited_for = waits_for_;
    facts.every = a_.every;
    return facts;
  }

  const DrillArguments a_;
  const std::atomic<bool>* const stop_;
  const time_t wall_ = ::time(nullptr);
  TargetArguments target_;
  std::string output_;  // of the job; empty: not known
  DrillPlanOptions plan_options_;
  std::unique_ptr<OutputLock> lock_;  // no other drill of this job
  std::unique_ptr<DrillPlan> plan_;
  FaultClock clock_;
  std::optional<PlannedFault> next_;
  bool plan_over_ = false;
  std::optional<DrilledSummary> baseline_;
  DrillWatch watch_;
  std::unique_ptr<FaultMaker> faults_;
  LocalPlatform platform_;
  std::optional<ProcessId> child_;
  int64_t child_pid_ = 0;
  int child_code_ = 0;
  bool to_restart_ = false, restarted_ = false;
  std::unique_ptr<DrillSampler> sampler_;
  JobStatus last_;
  std::optional<CoordinatorRecord> record_;
  std::string job_;
  uint64_t total_ = 0;
  TimeNs waits_since_ = 0;  // the next fault, for whom it is about
  std::string waits_for_;   // in words
  TimeNs started_ = 0, begin_ = 0, answered_ = 0, gone_since_ = 0;
  bool ended_ = false, interrupted_ = false;
  std::string how_;
  Status failure_;
};

}  // namespace

int drill_command(const DrillArguments& arguments) {
  Drill drill(arguments);
  const auto code = drill.run();
  return code.is_ok() ? code.value() : report(code.status());
}

}  // namespace flux
