// Commands about a job that runs elsewhere: status, logs, stop.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <utility>

#include <poll.h>
#include <unistd.h>

#include "flux/base/executor.h"
#include "flux/base/text.h"
#include "flux/coordinator/status_json.h"
#include "flux/main/commands.h"
#include "flux/main/job_target.h"
#include "flux/main/status_text.h"
#include "flux/main/stop_signal.h"

namespace flux {
namespace {

constexpr int kWatchMs = 1000;
constexpr int kPollMs = 100;
constexpr double kFirstLook_s = 0.5;            // a coordinator has read its folder by then
constexpr TimeNs kTakeover = 5 * kSecond;       // a new coordinator answers much sooner
constexpr size_t kStampLength = 23;             // "2026-01-31 23:59:59.123"
constexpr std::streamoff kTailBytes = 1 << 20;  // of each log

// Of a job that runs no more: how it ended. `last`: what its coordinator said last.
Status ending_of(const JobTarget& target, const JobStatus& last) {
  const auto end = last_end(target);
  if (end) return end_status(output_of(target), *end);
  if (last.state == "failed") return error(Code::kUnavailable, "the job failed: {}", last.error);
  if (!target.folder) return Status::ok();  // it cannot be seen from here
  return error(Code::kUnavailable,
               "the job has not come to its end: it failed or was killed; flux logs tells more");
}

// One that has just started does not know yet whether it takes over.
bool too_early(const Result<JobStatus>& status) {
  return status.is_ok() && status.value().state == "starting" && !status.value().taken_over &&
         status.value().up_s < kFirstLook_s;
}

// While a coordinator that died is being replaced, asks again for a while.
Result<JobStatus> ask_patiently(const TargetArguments& arguments, const std::atomic<bool>* stop) {
  const TimeNs deadline = steady_now_ns() + kTakeover;
  for (;;) {
    FLUX_ASSIGN_OR_RETURN(const JobTarget target, find_target(arguments, true));
    auto status = ask_status(target);
    const bool may_come = !status.is_ok() && status.status().code() == Code::kUnavailable &&
                          target.record && seems_to_run(target);
    if (!(may_come || too_early(status)) || steady_now_ns() > deadline ||
        (stop != nullptr && stop->load()))
      return status;
    ::poll(nullptr, 0, kPollMs);
  }
}

void show_status(const JobStatus& status, const StatusArguments& arguments, bool terminal) {
  if (terminal && arguments.watch) fmt::print("\033[H\033[2J");
  fmt::print("{}", arguments.json ? status_json(status) : status_text(status));
  std::fflush(stdout);
}

// Of a job without a coordinator that could be asked: what is known from its folder. Nothing: as if
// it were there.
std::optional<Status> status_without_coordinator(const JobTarget& target) {
  if (seems_to_run(target)) return std::nullopt;
  if (const std::string pid = embedded_process(target); !pid.empty()) {
    fmt::print("{} runs in one process (pid {}); only a cluster says more (flux run --servers 1)\n",
               target.named, pid);
    return Status::ok();
  }
  const auto end = last_end(target);
  if (!end) return std::nullopt;
  fmt::print("{}", end_text(target.named, output_of(target), *end));
  return end_status(output_of(target), *end);
}

Status status_of(const StatusArguments& arguments) {
  FLUX_ASSIGN_OR_RETURN(const JobTarget target, find_target(arguments.target, false));
  if (target.folder && !arguments.json)
    if (const auto known = status_without_coordinator(target)) return *known;
  const bool terminal = ::isatty(STDOUT_FILENO) != 0;
  const std::atomic<bool>* stop = arguments.watch ? install_stop_signal() : nullptr;
  FLUX_ASSIGN_OR_RETURN(JobStatus status, ask_patiently(arguments.target, stop));
  for (;;) {
    show_status(status, arguments, terminal);
    if (!arguments.watch) return Status::ok();
    ::poll(nullptr, 0, kWatchMs);
    if (stop->load()) return Status::ok();
    auto next = ask_patiently(arguments.target, stop);
    if (stop->load()) return Status::ok();
    if (!next.is_ok()) {  // seen before, so this is its end, not a mistake of the person
      fmt::print("the job has ended: {}\n", next.status().message());
      return ending_of(target, status);
    }
    status = std::move(next).value();
  }
}

// What a log has beyond `*from`, whole lines only; *from moves on.
std::string read_more(const std::string& path, std::streamoff* from) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  const std::streamoff size = file.tellg();
  if (*from < 0) *from = std::max<std::streamoff>(0, size - kTailBytes);
  if (size <= *from) return "";
  std::string text(static_cast<size_t>(size - *from), '\0');
  file.seekg(*from);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  text.resize(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1);
  *from += static_cast<std::streamoff>(text.size());
  return text;
}

class LogView {
 public:
  LogView(const ClusterFolder& folder, std::vector<std::string> roles)
      : folder_(folder), roles_(std::move(roles)) {}

  // Prints what is new in all logs, in the order of its times.
  void show() {
    struct Line {
      std::string stamp, text;
    };
    std::vector<Line> lines;
    for (const std::string& role : roles_) {
      const auto at = from_.try_emplace(role, -1).first;
      std::string stamp;  // a line without one belongs to the line before
      const std::string more = read_more(folder_.log_of(role), &at->second);
      for (const std::string& line : split(more, '\n')) {
        if (line.empty()) continue;
        if (line.size() > kStampLength && line[4] == '-' && line[10] == ' ' && line[19] == '.')
          stamp = line.substr(0, kStampLength);
        lines.push_back({stamp, line});
      }
    }
    std::stable_sort(lines.begin(), lines.end(),
                     [](const Line& a, const Line& b) { return a.stamp < b.stamp; });
    for (const Line& line : lines) fmt::print("{}\n", line.text);
    std::fflush(stdout);
  }

 private:
  ClusterFolder folder_;
  std::vector<std::string> roles_;
  std::map<std::string, std::streamoff> from_;
};

Status logs_of(const LogsArguments& arguments) {
  FLUX_ASSIGN_OR_RETURN(const JobTarget target, find_target(arguments.target, false));
  if (!target.folder) {
    FLUX_ASSIGN_OR_RETURN(const std::string text, http_get(target.http, "/logs"));
    fmt::print("{}", text);
    return Status::ok();
  }
  FLUX_ASSIGN_OR_RETURN(std::vector<std::string> roles, target.folder->roles());
  if (roles.empty())
    return invalid("{}: no logs in {}; this job has not run as a cluster", target.named,
                   target.folder->logs());
  if (!arguments.role.empty()) {
    if (std::find(roles.begin(), roles.end(), arguments.role) == roles.end())
      return invalid("no log of '{}'{}; there are: {}", arguments.role,
                     did_you_mean(arguments.role, roles), join(roles, ", "));
    roles = {arguments.role};
  }
  LogView view(*target.folder, roles);
  view.show();
  if (!arguments.follow) return Status::ok();
  const std::atomic<bool>* stop = install_stop_signal();
  while (!stop->load()) {
    // The record is another one after each new coordinator, and gone after the job.
    const auto now = find_target(arguments.target, false);
    const bool running = seems_to_run(target) || (now.is_ok() && seems_to_run(now.value()));
    view.show();
    if (!running) return ending_of(target, JobStatus());
    ::poll(nullptr, 0, kPollMs);
  }
  return Status::ok();
}

Status stop_job(const StopArguments& arguments) {
  FLUX_ASSIGN_OR_RETURN(const JobTarget target, find_target(arguments.target, true));
  FLUX_RETURN_IF_ERROR(ask_status(target).status());  // says it if the job does not run
  FLUX_RETURN_IF_ERROR(http_post_json(target.http, "/stop", "{}").status());
  fmt::print("asked the coordinator of {} to stop\n", target.named);
  const TimeNs deadline = steady_now_ns() + static_cast<TimeNs>(arguments.deadline_s) * kSecond;
  JobStatus last;
  last.state.clear();
  for (;;) {
    auto status = ask_status(target);
    if (status.is_ok() && status.value().state != last.state) {
      fmt::print("{}\n", status.value().state);
      std::fflush(stdout);
    }
    if (status.is_ok()) last = status.value();
    const bool gone = target.record ? !seems_to_run(target) : !status.is_ok();
    if (gone) break;
    if (steady_now_ns() > deadline)
      return error(Code::kUnavailable, "{} still runs after {} s (state: {}); see flux logs {}",
                   target.named, arguments.deadline_s, last.state, target.named);
    ::poll(nullptr, 0, kPollMs);
  }
  fmt::print("{} has ended\n", target.named);
  return ending_of(target, last);
}

}  // namespace

int status_command(const StatusArguments& arguments) {
  return report(status_of(arguments));
}

int logs_command(const LogsArguments& arguments) {
  return report(logs_of(arguments));
}

int stop_command(const StopArguments& arguments) {
  return report(stop_job(arguments));
}

}  // namespace flux
