#include "flux/main/supervisor.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include <poll.h>
#include <unistd.h>

#include "flux/base/executor.h"
#include "flux/main/cluster_folder.h"
#include "flux/main/event_lines.h"
#include "flux/main/job_end.h"
#include "flux/main/job_roles.h"
#include "flux/main/memory_watch.h"
#include "flux/main/output_lock.h"
#include "flux/main/restarts.h"
#include "flux/main/role_keeper.h"
#include "flux/platform/ssh_platform.h"
#include "flux/rpc/address.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

constexpr int kTickMs = 20;
constexpr TimeNs kListenDeadline = 30 * kSecond;  // a coordinator that neither listens nor ends
constexpr TimeNs kEndDeadline = 10 * kSecond;     // a job that cannot go on, or it is killed
constexpr TimeNs kLeaveDeadline = 10 * kSecond;   // roles after the end of the job
constexpr TimeNs kTermDeadline = 2 * kSecond;
constexpr uint64_t kHostsMax = 1 << 20;

Result<std::string> own_program() {
  std::string path(4096, '\0');
  const ssize_t n = ::readlink("/proc/self/exe", path.data(), path.size());
  if (n <= 0) return errno_status("cannot find the path of this program", errno);
  path.resize(static_cast<size_t>(n));
  return path;
}

void say(const std::string& line, bool json) {
  if (json) return EventLines(true).message(line);
  const bool terminal = ::isatty(STDOUT_FILENO) != 0;  // the coordinator may have drawn a bar
  fmt::print("{}{}\n", terminal ? "\r\033[K" : "", line);
  std::fflush(stdout);
}

class Supervisor {
 public:
  Supervisor(const Job& job, const SupervisorOptions& options)
      : job_(job), options_(options), folder_(job.output), platform_(options.run.ssh) {}

  Result<int> run() {
    FLUX_RETURN_IF_ERROR(prepare());
    auto code = keep_running();
    // The coordinator was asked to stop, or died: it does not know that this was no person's wish.
    if (!code.is_ok())
      (void)leave_end(job_.output,
                      {"failed", code.status().message(), "", options_.run.resume_command});
    folder_.remove_record();
    return code;
  }

 private:
  Result<int> keep_running() {
    FLUX_RETURN_IF_ERROR(start_coordinator());
    FLUX_RETURN_IF_ERROR(wait_until_it_listens());
    if (!over_) FLUX_RETURN_IF_ERROR(start_others());
    while (!over_) tick();
    let_others_leave();
    if (!failure_.is_ok()) return failure_;
    return code_;
  }

  Status prepare() {
    program_ = options_.program;
    if (program_.empty()) {
      FLUX_ASSIGN_OR_RETURN(program_, own_program());
    }
    FLUX_RETURN_IF_ERROR(absolute_paths(&job_));
    folder_ = ClusterFolder(job_.output);
    FLUX_RETURN_IF_ERROR(read_hosts());
    FLUX_ASSIGN_OR_RETURN(lock_, OutputLock::take(folder_.path()));
    FLUX_RETURN_IF_ERROR(folder_.make());
    FLUX_ASSIGN_OR_RETURN(const auto roles, folder_.roles());
    for (const std::string& role : roles) FLUX_RETURN_IF_ERROR(remove_all(folder_.log_of(role)));
    FLUX_ASSIGN_OR_RETURN(const auto sockets, read_folder(folder_.sockets()));
    for (const std::string& name : sockets)
      FLUX_RETURN_IF_ERROR(remove_all(join_path(folder_.sockets(), name)));
    folder_.remove_record();
    FLUX_RETURN_IF_ERROR(remove_all(folder_.faults_file()));  // of a drill that is over
    FLUX_RETURN_IF_ERROR(remove_all(folder_.wanted_file()));
    listen_ =
        options_.run.listen.empty() ? local_address(folder_, "coordinator") : options_.run.listen;
    http_ = options_.run.http;
    FLUX_ASSIGN_OR_RETURN(token_, folder_.make_secret(kClusterToken));
    return Status::ok();
  }

  Status read_hosts() {
    const RunArguments& run = options_.run;
    if (run.hosts.empty()) return Status::ok();
    FLUX_ASSIGN_OR_RETURN(const std::string text, read_whole_file(run.hosts, kHostsMax));
    FLUX_ASSIGN_OR_RETURN(hosts_, HostList::parse(run.hosts, text));
    if (run.listen.empty() && !hosts_.all_here())
      return invalid("--hosts {}: other hosts must reach the coordinator: --listen tcp:HOST:PORT",
                     run.hosts);
    return Status::ok();
  }

  // --- the coordinator ---

  std::vector<std::string> coordinator_words() const {
    const RunArguments& run = options_.run;
    std::vector<std::string> words = {program_, "coordinator", "--token-file",
                                      folder_.token_file()};
    if (!run.certificates.empty()) words = {program_, "coordinator", "--certs", run.certificates};
    if (run.insecure) words.emplace_back("--insecure");
    if (!run.chaos.empty()) words.insert(words.end(), {"--chaos", run.chaos});
    if (run.drillable) words.insert(words.end(), {"--faults", folder_.faults_file()});
    const uint32_t servers = keeper_ ? std::max(1U, keeper_->servers()) : run.servers;
    const uint32_t workers = keeper_ ? std::max(1U, keeper_->workers()) : run.workers;
    words.insert(words.end(), {run.job.job, "--listen", listen_, "--servers",
                               std::to_string(servers), "--workers", std::to_string(workers),
                               "--log", folder_.log_of("coordinator"), "--supervisor",
                               std::to_string(::getpid()), "--resume-command", run.resume_command});
    for (const std::string& set : run.job.sets) words.insert(words.end(), {"--set", set});
    if (run.job.threads >= 0)
      words.insert(words.end(), {"--set", fmt::format("threads={}", run.job.threads)});
    // Only the first time: what it has trained since is not to be forgotten.
    if (run.fresh && !listened_) words.emplace_back("--fresh");
    if (!http_.empty()) words.insert(words.end(), {"--http", http_});
    if (run.json) words.emplace_back("--json");
    if (!run.summary.empty()) words.insert(words.end(), {"--summary", run.summary});
    return words;
  }

  Status start_coordinator() {
    ProcessSpec spec;
    spec.name = "coordinator";
    spec.arguments = coordinator_words();
    FLUX_ASSIGN_OR_RETURN(coordinator_, platform_.start(spec));
    for (const ProcessInfo& info : platform_.running())
      if (info.id == *coordinator_) coordinator_pid_ = info.pid;
    return Status::ok();
  }

  Status wait_until_it_listens() {
    const TimeNs deadline = steady_now_ns() + kListenDeadline;
    while (!over_) {
      const auto record = folder_.read_record();
      if (record.is_ok() && record.value().pid == coordinator_pid_) {
        keep_addresses(record.value());
        return Status::ok();
      }
      if (steady_now_ns() > deadline)
        return error(Code::kUnavailable, "the coordinator does not begin to listen within {} s",
                     kListenDeadline / kSecond);
      tick();
    }
    return Status::ok();  // it has ended and said why
  }

  // It comes back where it was first.
  void keep_addresses(const CoordinatorRecord& record) {
    listened_ = true;
    address_ = record.listen;
    const auto reached = parse_address(record.listen);
    auto listens = parse_address(listen_);
    if (reached.is_ok() && listens.is_ok() && !listens.value().local) {
      listens.value().port = reached.value().port;
      listen_ = listens.value().text();
    }
    const size_t host = record.http.find("://");
    if (host != std::string::npos) http_ = record.http.substr(host + 3);
  }

  void coordinator_ended(const ProcessEnd& end) {
    coordinator_.reset();
    code_ = end.code;
    const bool memory = memory_.ran_out(end, "", true);
    const bool crashed = end.signal != 0 || memory;
    const std::string what =
        "the coordinator ended: " + end.text() +
        (memory ? ": out of memory: " + memory_.text(end, true) : std::string());
    if (crashed && listened_ && !asked_ && failure_.is_ok()) {
      if (const auto at = coordinator_again(end, memory)) {
        coordinator_at_ = *at;
        return say(what + "; started again", options_.run.json);
      }
    }
    over_ = true;
    if (crashed)
      fail(error(Code::kUnavailable, "{}; {}run the job again to go on from its last checkpoint",
                 what, memory ? "give the job more memory, and " : ""));
  }

  // When; nothing: it has died too often. A drill kills on purpose.
  std::optional<TimeNs> coordinator_again(const ProcessEnd& end, bool memory) {
    const TimeNs now = steady_now_ns();
    const bool drilled =
        options_.run.drillable && (memory ? starved_by_drill(folder_, end.pid) : end.signal != 0);
    if (drilled) return now;
    if (memory && !coordinator_restarts_.out_of_memory(now)) return std::nullopt;
    return coordinator_restarts_.died(now);
  }

  Status start_others() {
    RoleKeeperOptions options;
    options.run = options_.run;
    options.program = program_;
    options.coordinator = address_;
    options.token = token_;
    options.hosts = hosts_;
    keeper_ = std::make_unique<RoleKeeper>(
        job_, std::move(options), folder_, &platform_, &memory_,
        [this](const std::string& line) { say(line, options_.run.json); });
    return keeper_->start_all();
  }

  void tick() {
    for (const ProcessEnd& end : platform_.ended()) {
      if (coordinator_ && end.id == *coordinator_)
        coordinator_ended(end);
      else if (keeper_)
        keeper_->handle(end);
    }
    if (over_) return;
    if (!coordinator_ && steady_now_ns() >= coordinator_at_) {
      const Status started = start_coordinator();
      if (!started.is_ok()) {
        fail(started);
        over_ = true;
        return;
      }
    }
    if (keeper_ && !asked_) {
      keeper_->tick();
      if (!keeper_->failure().is_ok() && failure_.is_ok()) cannot_go_on(keeper_->failure());
    }
    end_if_due();
    ::poll(nullptr, 0, kTickMs);
  }

  void cannot_go_on(const Status& why) {
    fail(why);
    end_by_ = steady_now_ns() + kEndDeadline;
    keeper_->job_ends();
  }

  void end_if_due() {
    if (!coordinator_) return;
    if (!asked_ && (!failure_.is_ok() || options_.stop->load())) {
      asked_ = true;
      if (keeper_) keeper_->job_ends();
      platform_.ask_to_stop(*coordinator_);
    }
    if (end_by_ != 0 && steady_now_ns() > end_by_) {
      say("the coordinator does not end; killed", options_.run.json);
      platform_.kill(*coordinator_);
      end_by_ = 0;
    }
  }

  void fail(const Status& status) {
    if (failure_.is_ok()) failure_ = status;
  }

  // Roles leave by themselves when the job is over; those that do not are told, then killed.
  void let_others_leave() {
    const bool well = failure_.is_ok() && code_ == 0;
    wait_for_all(well ? kLeaveDeadline : 0);
    for (const ProcessInfo& info : platform_.running()) platform_.ask_to_stop(info.id);
    wait_for_all(kTermDeadline);
    for (const ProcessInfo& info : platform_.running()) platform_.kill(info.id);
  }

  void wait_for_all(TimeNs at_most) {
    const TimeNs deadline = steady_now_ns() + at_most;
    for (;;) {
      (void)platform_.ended();
      if (platform_.running().empty() || steady_now_ns() >= deadline) return;
      ::poll(nullptr, 0, kTickMs);
    }
  }

  Job job_;
  const SupervisorOptions options_;
  ClusterFolder folder_;
  std::string program_;
  std::string token_;
  HostList hosts_;
  std::string listen_, http_;  // of the coordinator; fixed when it has listened once
  std::string address_;        // where others reach it
  std::unique_ptr<OutputLock> lock_;
  SshPlatform platform_;
  std::optional<ProcessId> coordinator_;
  int64_t coordinator_pid_ = 0;
  Restarts coordinator_restarts_;
  MemoryWatch memory_;
  TimeNs coordinator_at_ = 0;  // to be started again
  bool listened_ = false;
  std::unique_ptr<RoleKeeper> keeper_;
  bool over_ = false;
  bool asked_ = false;  // the coordinator to stop
  TimeNs end_by_ = 0;   // then it is killed; 0: no hurry
  int code_ = 0;
  Status failure_;
};

}  // namespace

int supervise(const Job& job, const SupervisorOptions& options) {
  Supervisor supervisor(job, options);
  const auto code = supervisor.run();
  if (code.is_ok()) return code.value();
  EventLines(options.run.json).error(code.status());
  return report(code.status());
}

}  // namespace flux
