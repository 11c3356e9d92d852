#include "flux/main/drill_processes.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>
#include <tuple>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "flux/base/text.h"
#include "flux/main/role_process.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

constexpr const char* kCgroups = "/sys/fs/cgroup";
constexpr const char* kTinyMemory = "1048576";  // what it has already is charged elsewhere

std::vector<std::string> words_of(int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/cmdline", pid), std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return split(text, '\0');
}

bool is_role(const RoleProcess& process) {
  const std::vector<std::string> words = words_of(process.pid);
  if (words.size() < 2 || words[1] != process.role) return false;
  if (process.role == "coordinator") return true;
  const auto flag = std::find(words.begin(), words.end(), "--name");
  if (flag != words.end() && flag + 1 != words.end()) return flag[1] == process.name;
  return process.name.ends_with(fmt::format(".{}", process.pid));  // default_name()
}

// Stays with one process, whoever gets its number later.
class Handle {
 public:
  explicit Handle(int64_t pid)
      : fd_(static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0))) {}
  ~Handle() {
    if (fd_ >= 0) ::close(fd_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  bool is_open() const { return fd_ >= 0; }
  bool signal(int number) const {
    return ::syscall(SYS_pidfd_send_signal, fd_, number, nullptr, 0) == 0;
  }

 private:
  const int fd_;
};

Status check(const RoleProcess& process, const Handle& handle) {
  if (process.host != host_name())
    return invalid("{} runs on {}, not on this host: run the drill there", process.name,
                   process.host);
  if (!handle.is_open() || !is_role(process))
    return error(Code::kNotFound, "process {} is not {} any more", process.pid, process.name);
  return Status::ok();
}

bool write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.flush();
  return file.good();
}

// The process's own cgroup of version 2, if that has one: "/sys/fs/cgroup/user.slice/...".
std::string cgroup_of(int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/cgroup", pid));
  std::string line;
  while (std::getline(file, line))
    if (line.starts_with("0::/")) {
      const std::string path = kCgroups + line.substr(3);
      return path_exists(join_path(path, "cgroup.procs")) ? path : "";
    }
  return "";
}

// Empty if the kernel does not let us.
std::string take_by_cgroup(const RoleProcess& process) {
  const std::string parent = cgroup_of(process.pid);
  if (parent.empty()) return "";
  const std::string folder = join_path(parent, fmt::format("flux-drill-{}", process.pid));
  if (::mkdir(folder.c_str(), 0755) != 0) return "";
  const bool limited = path_exists(join_path(folder, "memory.max")) &&
                       write_text(join_path(folder, "memory.max"), kTinyMemory) &&
                       write_text(join_path(folder, "cgroup.procs"), std::to_string(process.pid));
  if (limited) {
    (void)write_text(join_path(folder, "memory.swap.max"), "0");
    return folder;
  }
  ::rmdir(folder.c_str());
  return "";
}

}  // namespace

std::vector<RoleProcess> processes_of(const JobStatus& status, const CoordinatorRecord* record) {
  std::vector<RoleProcess> all;
  if (record != nullptr)
    all.push_back({"coordinator", "coordinator", record->host, record->listen, record->pid});
  for (const ServerStatus& s : status.servers)
    all.push_back({"server", s.name, s.host, s.address, s.pid});
  for (const WorkerStatus& w : status.workers) all.push_back({"worker", w.name, w.host, "", w.pid});
  std::sort(all.begin(), all.end(), [](const RoleProcess& a, const RoleProcess& b) {
    return std::tie(a.role, a.name, a.pid) < std::tie(b.role, b.name, b.pid);
  });
  return all;
}

Result<RoleProcess> choose(const std::vector<RoleProcess>& all, const RoleChoice& choice,
                           uint64_t draw) {
  std::vector<RoleProcess> fitting;
  for (const RoleProcess& process : all)
    if (choice.role == "any" || choice.role == process.role) fitting.push_back(process);
  if (fitting.empty())
    return error(Code::kNotFound, "no {} is there now",
                 choice.role == "any" ? "process" : choice.role);
  if (!choice.index) return fitting[draw % fitting.size()];
  const std::string name = fmt::format("{}-{}", choice.role, *choice.index);
  for (const RoleProcess& process : fitting)
    if (process.name == name) return process;
  // Roles started by hand have names of their own: their number is their place.
  const bool numbered = std::any_of(fitting.begin(), fitting.end(), [&](const RoleProcess& p) {
    return p.name.starts_with(choice.role + "-");
  });
  if (!numbered && *choice.index < fitting.size()) return fitting[*choice.index];
  return error(Code::kNotFound, "{} is not there now", choice.text());
}

Status signal_process(const RoleProcess& process, int number) {
  const Handle handle(process.pid);
  FLUX_RETURN_IF_ERROR(check(process, handle));
  if (!handle.signal(number))
    return errno_status(fmt::format("cannot signal {} (process {})", process.name, process.pid),
                        errno);
  return Status::ok();
}

bool obeys_faults(const RoleProcess& process) {
  const std::vector<std::string> words = words_of(process.pid);
  return std::find(words.begin(), words.end(), "--faults") != words.end();
}

Result<OomDone> take_memory(const RoleProcess& process) {
  const Handle handle(process.pid);
  FLUX_RETURN_IF_ERROR(check(process, handle));
  const std::string cgroup = take_by_cgroup(process);
  if (!cgroup.empty()) return OomDone{"a cgroup with 1 MiB", cgroup};
  rlimit before{};
  const auto pid = static_cast<pid_t>(process.pid);
  bool limited = ::prlimit(pid, RLIMIT_AS, nullptr, &before) == 0;
  const rlimit none{0, before.rlim_max};
  limited = limited && ::prlimit(pid, RLIMIT_AS, &none, nullptr) == 0;
  if (!limited)
    return errno_status(fmt::format("cannot limit the memory of {}", process.name), errno);
  return OomDone{"no more address space (no cgroup v2 with a memory limit can be made here)", "",
                 before.rlim_cur};
}

void give_memory_back(const RoleProcess& process, const OomDone& done) {
  const Handle handle(process.pid);
  const bool there = check(process, handle).is_ok();
  const auto pid = static_cast<pid_t>(process.pid);
  if (!done.cgroup.empty()) {
    if (there)
      (void)write_text(join_path(parent_folder(done.cgroup), "cgroup.procs"), std::to_string(pid));
    ::rmdir(done.cgroup.c_str());
  } else if (there) {
    rlimit limit{};
    if (::prlimit(pid, RLIMIT_AS, nullptr, &limit) != 0) return;
    limit.rlim_cur = done.address_space;
    (void)::prlimit(pid, RLIMIT_AS, &limit, nullptr);
  }
}

}  // namespace flux
