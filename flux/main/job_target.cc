#include "flux/main/job_target.h"

#include <fstream>
#include <string>
#include <utility>

#include <unistd.h>

#include "flux/coordinator/status_json.h"
#include "flux/main/job_roles.h"
#include "flux/main/output_lock.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

std::string own_host() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

// A process that has ended but was not waited for keeps its number: the kernel's word for it is Z.
bool process_exists(int64_t pid) {
  if (pid <= 0) return false;
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  if (!std::getline(file, text)) return false;
  const size_t name_end = text.rfind(')');  // a name may hold anything
  return name_end == std::string::npos || text.compare(name_end, 4, ") Z ") != 0;
}

Status not_running(const JobTarget& target, const std::string& why) {
  if (const std::string pid = embedded_process(target); !pid.empty())
    return invalid(
        "{} runs in one process (pid {}), which answers nobody: only clusters do (flux run "
        "--servers 1 --workers 1); kill -INT {} stops it with a checkpoint",
        target.named, pid, pid);
  std::string command = target.record ? target.record->command : "";
  if (const auto end = last_end(target)) {
    if (command.empty()) command = end->command;
    return invalid("{} does not run: it {}\nto start it, or to go on with it: {}", target.named,
                   end_phrase(*end), command);
  }
  if (command.empty()) command = "flux run JOB --servers 1 --workers 1";
  return invalid("{} does not run: {}\nto start it, or to go on with it: {}", target.named, why,
                 command);
}

Result<std::string> output_of(const TargetArguments& arguments) {
  if (is_folder(arguments.target)) return arguments.target;
  FLUX_ASSIGN_OR_RETURN(const JobSpec spec, read_spec(arguments.target, arguments.sets));
  FLUX_ASSIGN_OR_RETURN(const Job job, parse_spec(spec));
  if (job.output.empty())
    return invalid("{}: no output folder, so nothing of it can be found", arguments.target);
  return job.output;
}

}  // namespace

std::string output_of(const JobTarget& target) {
  return target.folder ? parent_folder(target.folder->path()) : "";
}

std::string embedded_process(const JobTarget& target) {
  if (!target.folder || target.record) return "";
  const bool cluster = !OutputLock::holder(target.folder->path()).empty();  // its supervisor
  return cluster ? "" : OutputLock::holder(output_of(target));
}

std::optional<JobEnd> last_end(const JobTarget& target) {
  if (!target.folder) return std::nullopt;
  auto end = read_end(output_of(target));
  return end.is_ok() ? std::optional<JobEnd>(std::move(end).value()) : std::nullopt;
}

Result<JobTarget> find_target(const TargetArguments& arguments, bool must_run) {
  JobTarget target;
  target.named = arguments.target;
  target.http.certificates = arguments.security.certificates;
  if (!arguments.security.token_file.empty()) {
    FLUX_ASSIGN_OR_RETURN(target.http.token, read_secret(arguments.security.token_file));
  }
  if (arguments.target.starts_with("http://") || arguments.target.starts_with("https://")) {
    target.http.url = arguments.target;
    while (target.http.url.ends_with("/")) target.http.url.pop_back();
    return target;
  }
  FLUX_ASSIGN_OR_RETURN(const std::string output, output_of(arguments));
  target.folder = ClusterFolder(output);
  const auto record = target.folder->read_record();
  if (record.is_ok()) {
    target.record = record.value();
    target.http.url = record.value().http;
    if (target.http.certificates.empty()) target.http.certificates = record.value().certificates;
  }
  if (must_run && !record.is_ok())
    return not_running(target, "no coordinator has left its address in " + target.folder->path());
  const auto token = target.folder->admin_token();
  if (target.http.token.empty() && token.is_ok()) target.http.token = token.value();
  return target;
}

bool seems_to_run(const JobTarget& target) {
  if (!target.record) return false;
  if (target.record->host != own_host()) return true;  // cannot be seen from here
  return process_exists(target.record->pid) || process_exists(target.record->supervisor);
}

Result<JobStatus> ask_status(const JobTarget& target) {
  const auto text = http_get(target.http, "/status");
  if (text.is_ok()) return parse_status_json(text.value());
  if (text.status().code() != Code::kUnavailable) return text.status();
  if (target.record && !seems_to_run(target))
    return not_running(target, fmt::format("its coordinator, process {} on {}, is gone",
                                           target.record->pid, target.record->host));
  return text.status();
}

}  // namespace flux
