#include "flux/main/supervisor.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <poll.h>
#include <sys/un.h>
#include <unistd.h>

#include "flux/base/executor.h"
#include "flux/base/text.h"
#include "flux/main/cluster_folder.h"
#include "flux/main/job_roles.h"
#include "flux/main/output_lock.h"
#include "flux/platform/local_platform.h"
#include "flux/rpc/fault_file.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

constexpr int kTickMs = 20;
constexpr uint32_t kRestartsMax = 5;  // of one worker
constexpr TimeNs kRestartPause = kSecond / 2;
constexpr TimeNs kListenDeadline = 30 * kSecond;  // a coordinator that neither listens nor ends
constexpr TimeNs kAskDeadline = 3 * kSecond;      // a coordinator that lost a server ends by itself
constexpr TimeNs kEndDeadline = 10 * kSecond;     // ... or is killed
constexpr TimeNs kLeaveDeadline = 10 * kSecond;   // roles after the end of the job
constexpr TimeNs kTermDeadline = 2 * kSecond;
constexpr int kBadInput = 2;

Result<std::string> own_program() {
  std::string path(4096, '\0');
  const ssize_t n = ::readlink("/proc/self/exe", path.data(), path.size());
  if (n <= 0) return errno_status("cannot find the path of this program", errno);
  path.resize(static_cast<size_t>(n));
  return path;
}

void say(const std::string& line) {
  const bool terminal = ::isatty(STDOUT_FILENO) != 0;  // the coordinator may have drawn a bar
  fmt::print("{}{}\n", terminal ? "\r\033[K" : "", line);
  std::fflush(stdout);
}

class Supervisor {
 public:
  Supervisor(const Job& job, const SupervisorOptions& options)
      : job_(job), options_(options), folder_(job.output) {}

  Result<int> run() {
    FLUX_RETURN_IF_ERROR(prepare());
    FLUX_RETURN_IF_ERROR(start_coordinator());
    if (coordinator_) FLUX_RETURN_IF_ERROR(start_others());
    while (coordinator_) tick();
    let_others_leave();
    folder_.remove_record();
    if (!failure_.is_ok()) return failure_;
    return code_;
  }

 private:
  struct Member {
    std::string name;
    bool server = false;
    uint32_t restarts = 0;
    std::optional<ProcessId> process;
    TimeNs start_at = 0;  // again; 0: not to be
  };

  Status prepare() {
    FLUX_ASSIGN_OR_RETURN(program_, own_program());
    FLUX_RETURN_IF_ERROR(absolute_paths(&job_));
    folder_ = ClusterFolder(job_.output);
    FLUX_ASSIGN_OR_RETURN(lock_, OutputLock::take(folder_.path()));
    FLUX_RETURN_IF_ERROR(folder_.make());
    for (const std::string& role : folder_.roles())
      FLUX_RETURN_IF_ERROR(remove_all(folder_.log_of(role)));
    for (const std::string& name : list_folder(folder_.sockets()))
      FLUX_RETURN_IF_ERROR(remove_all(join_path(folder_.sockets(), name)));
    folder_.remove_record();
    FLUX_RETURN_IF_ERROR(remove_all(folder_.faults_file()));  // of a drill that is over
    return folder_.make_secret(kClusterToken).status();
  }

  // A Unix socket unless its path is longer than the system takes.
  std::string listen_address(const std::string& role) const {
    const std::string path = join_path(folder_.sockets(), role);
    return path.size() < sizeof(sockaddr_un::sun_path) ? "unix:" + path : "tcp:127.0.0.1:0";
  }

  std::vector<std::string> common(const std::string& role) const {
    std::vector<std::string> words = {program_, role, "--token-file", folder_.token_file()};
    if (!options_.run.chaos.empty()) words.insert(words.end(), {"--chaos", options_.run.chaos});
    if (options_.run.drillable) words.insert(words.end(), {"--faults", folder_.faults_file()});
    return words;
  }

  Status start_coordinator() {
    const RunArguments& run = options_.run;
    std::vector<std::string> words = common("coordinator");
    words.insert(words.end(),
                 {run.job.job, "--listen", listen_address("coordinator"), "--servers",
                  std::to_string(run.servers), "--workers", std::to_string(run.workers), "--log",
                  folder_.log_of("coordinator"), "--supervisor", std::to_string(::getpid()),
                  "--resume-command", run.resume_command});
    for (const std::string& set : run.job.sets) words.insert(words.end(), {"--set", set});
    if (run.job.threads >= 0)
      words.insert(words.end(), {"--set", fmt::format("threads={}", run.job.threads)});
    if (run.fresh) words.emplace_back("--fresh");
    if (!run.http.empty()) words.insert(words.end(), {"--http", run.http});
    if (!run.summary.empty()) words.insert(words.end(), {"--summary", run.summary});
    FLUX_ASSIGN_OR_RETURN(coordinator_, platform_.start({"coordinator", words, ""}));
    const int64_t pid = platform_.running().front().pid;
    const TimeNs deadline = steady_now_ns() + kListenDeadline;
    while (coordinator_) {
      const auto record = folder_.read_record();
      if (record.is_ok() && record.value().pid == pid) {
        address_ = record.value().listen;
        return Status::ok();
      }
      if (steady_now_ns() > deadline)
        return error(Code::kUnavailable, "the coordinator does not begin to listen within {} s",
                     kListenDeadline / kSecond);
      tick();
    }
    return Status::ok();  // it has ended and said why
  }

  Status start_others() {
    for (uint32_t i = 0; i < options_.run.servers; ++i)
      members_.push_back({fmt::format("server-{}", i), true, 0, {}, 0});
    for (uint32_t i = 0; i < options_.run.workers; ++i)
      members_.push_back({fmt::format("worker-{}", i), false, 0, {}, 0});
    for (Member& member : members_) FLUX_RETURN_IF_ERROR(start(&member));
    return Status::ok();
  }

  uint32_t threads_per_worker() const {
    if (job_.threads != 0 || job_.deterministic) return worker_threads(job_, -1);
    return std::max(1U, std::thread::hardware_concurrency() / options_.run.workers);
  }

  Status start(Member* member) {
    std::vector<std::string> words = common(member->server ? "server" : "worker");
    words.insert(words.end(), {"--coordinator", address_, "--name", member->name});
    if (member->server) words.insert(words.end(), {"--listen", listen_address(member->name)});
    if (member->server && options_.run.drillable) add_kill_point(*member, &words);
    if (!member->server)
      words.insert(words.end(), {"--threads", std::to_string(threads_per_worker())});
    FLUX_ASSIGN_OR_RETURN(member->process,
                          platform_.start({member->name, words, folder_.log_of(member->name)}));
    return Status::ok();
  }

  // What a drill asks of the next process of this name, once.
  void add_kill_point(const Member& member, std::vector<std::string>* words) {
    FaultFile file(folder_.faults_file());
    for (const Faults::Start& start : file.at(steady_now_ns()).starts) {
      const auto order = fmt::format("{}:{}", kill_point_name(start.order.point), start.order.pass);
      if (start.name != member.name || orders_[member.name] == order) continue;
      orders_[member.name] = order;
      words->insert(words->end(), {"--die-at", order});
    }
  }

  void tick() {
    for (const ProcessEnd& end : platform_.ended()) handle(end);
    if (coordinator_ && !asked_) start_again();
    const bool due = ask_by_ != 0 && steady_now_ns() > ask_by_;
    if (coordinator_ && !asked_ && (due || options_.stop->load())) stop_coordinator();
    if (coordinator_ && end_by_ != 0 && steady_now_ns() > end_by_) {
      say("the coordinator does not end; killed");
      platform_.kill(*coordinator_);
      end_by_ = 0;
    }
    if (coordinator_) ::poll(nullptr, 0, kTickMs);
  }

  void start_again() {
    for (Member& member : members_) {
      if (member.start_at == 0 || steady_now_ns() < member.start_at) continue;
      member.start_at = 0;
      const Status started = start(&member);
      if (!started.is_ok()) say(started.message());
    }
  }

  void stop_coordinator() {
    asked_ = true;
    platform_.ask_to_stop(*coordinator_);
  }

  void handle(const ProcessEnd& end) {
    if (coordinator_ && end.id == *coordinator_) {
      coordinator_.reset();
      code_ = end.code;
      if (end.signal != 0)
        fail(error(Code::kUnavailable,
                   "the coordinator was {}; run the job again to go on from its last checkpoint",
                   end.text()));
      return;
    }
    for (Member& member : members_)
      if (member.process == end.id) {
        member.process.reset();
        if (member.server)
          lost_server(member, end);
        else
          lost_worker(&member, end);
      }
  }

  void fail(const Status& status) {
    if (failure_.is_ok()) failure_ = status;
  }

  bool ended_well(const ProcessEnd& end) const { return end.signal == 0 && end.code == 0; }

  void lost_server(const Member& member, const ProcessEnd& end) {
    if (!coordinator_ || ended_well(end)) return;
    const std::string what = fmt::format("{} ended: {}{}", member.name, end.text(),
                                         end.signal == 0 ? last_line(member) : "");
    say(what);
    const bool refused = end.signal == 0 && end.code == kBadInput;
    fail(error(refused ? Code::kInvalid : Code::kUnavailable,
               "{}; the job cannot go on without its shards; run it again to go on from its last "
               "checkpoint",
               what));
    if (ask_by_ != 0) return;
    ask_by_ = steady_now_ns() + kAskDeadline;
    end_by_ = ask_by_ + kEndDeadline;
  }

  bool any_worker() const {
    return std::any_of(members_.begin(), members_.end(),
                       [](const Member& m) { return !m.server && (m.process || m.start_at != 0); });
  }

  void lost_worker(Member* member, const ProcessEnd& end) {
    if (!coordinator_ || asked_) return;
    if (ended_well(end)) {  // the job is over, or somebody asked it to leave
      if (any_worker()) return;
      return say(fmt::format("{} left; no worker is here now", member->name));
    }
    const std::string what = fmt::format("{} ended: {}{}", member->name, end.text(),
                                         end.signal == 0 ? last_line(*member) : "");
    const bool refused = end.signal == 0 && end.code == kBadInput;
    if (options_.run.drillable && end.signal != 0) member->restarts = 0;  // killed on purpose
    if (!refused && member->restarts < kRestartsMax) {
      // A little later each time: what makes it end may need time to pass.
      member->start_at = steady_now_ns() + member->restarts * kRestartPause;
      ++member->restarts;
      return say(fmt::format("{}; started again ({} of {})", what, member->restarts, kRestartsMax));
    }
    say(fmt::format("{}; not started again{}", what,
                    refused ? "" : fmt::format(": {} times are enough", kRestartsMax)));
    if (any_worker()) return;
    fail(error(refused ? Code::kInvalid : Code::kUnavailable,
               "no worker is left: {}; its lines: {}", what, folder_.log_of(member->name)));
    stop_coordinator();
  }

  // ": the last line of its log", which says why it ended.
  std::string last_line(const Member& member) const {
    const auto text = read_whole_file(folder_.log_of(member.name), 64 << 20);
    if (!text.is_ok()) return "";
    const std::vector<std::string> lines = split(text.value(), '\n');
    for (auto line = lines.rbegin(); line != lines.rend(); ++line)
      if (!line->empty()) return ": " + *line;
    return "";
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
  std::string address_;  // of the coordinator
  std::unique_ptr<OutputLock> lock_;
  LocalPlatform platform_;
  std::optional<ProcessId> coordinator_;
  std::vector<Member> members_;
  std::map<std::string, std::string> orders_;  // of a drill, by member: obeyed once
  bool asked_ = false;                         // the coordinator to stop
  TimeNs ask_by_ = 0;                          // then it is asked to; 0: no hurry
  TimeNs end_by_ = 0;                          // then it is killed; 0: no hurry
  int code_ = 0;
  Status failure_;
};

}  // namespace

int supervise(const Job& job, const SupervisorOptions& options) {
  Supervisor supervisor(job, options);
  const auto code = supervisor.run();
  return code.is_ok() ? code.value() : report(code.status());
}

}  // namespace flux
