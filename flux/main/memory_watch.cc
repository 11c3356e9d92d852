#include "flux/main/memory_watch.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <optional>

#include <sys/resource.h>
#include <unistd.h>

#include "flux/base/text.h"
#include "flux/platform/ssh_platform.h"

namespace flux {
namespace {

constexpr size_t kMoreBytes = size_t{1} << 30;  // more than an allocator has put by

void say_and_end() {
  constexpr char kText[] = "flux: out of memory\n";
  const ssize_t ignored = ::write(STDERR_FILENO, kText, sizeof kText - 1);
  (void)ignored;
  _exit(kOutOfMemoryCode);
}

constexpr const char* kKills = "oom_kill";
constexpr double kMiB = 1 << 20;

// The number after `name` in a file of "name number" lines.
std::optional<uint64_t> number_of(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::string word;
  uint64_t number = 0;
  while (file >> word >> number)
    if (word == name) return number;
  return std::nullopt;
}

}  // namespace

void end_when_out_of_memory() {
  std::set_new_handler(say_and_end);
}

void ask_for_more_memory() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  ::operator delete(::operator new(limit.rlim_cur + kMoreBytes));
}

struct MemoryWatch::Version {
  const char* counter;
  const char* bound;
};

// Lines of `own` are "5:memory:/path" for version 1 and "0::/path" for version 2; with both, memory
// is where the first one is.
MemoryWatch::MemoryWatch(const MemoryPlaces& places) {
  constexpr Version kOld{"memory.oom_control", "memory.limit_in_bytes"};
  constexpr Version kNew{"memory.events", "memory.max"};
  std::string old_path, new_path;
  std::ifstream file(places.own);
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> parts = split(line, ':');
    if (parts.size() < 3) continue;
    const std::string path = line.substr(parts[0].size() + parts[1].size() + 2);
    const std::vector<std::string> controllers = split(parts[1], ',');
    if (parts[1].empty()) new_path = path;
    if (std::find(controllers.begin(), controllers.end(), "memory") != controllers.end())
      old_path = path;
  }
  if (!old_path.empty()) find_group(kOld, places.groups + "/memory", old_path);
  if (!new_path.empty()) find_group(kNew, places.groups, new_path);
  if (counter_.empty()) counter_ = places.machine;
  seen_ = taken_ = number_of(counter_, kKills).value_or(0);
}

// In a container the path may be the one outside, of which only the last part is mounted, or none.
// A group without memory of its own is charged to the next one above.
void MemoryWatch::find_group(const Version& version, const std::string& mount, std::string path) {
  while (path.ends_with('/')) path.pop_back();
  std::error_code failed;
  while (!path.empty() && !std::filesystem::is_directory(mount + path, failed))
    path.erase(0, path.find('/', 1));
  for (;; path.resize(path.rfind('/'))) {
    const std::string counter = mount + path + "/" + version.counter;
    if (counter_.empty() && number_of(counter, kKills)) counter_ = counter;
    bounds_.push_back(mount + path + "/" + version.bound);
    if (path.empty()) return;
  }
}

void MemoryWatch::look(TimeNs now) {
  if (now < look_at_) return;
  look_at_ = now + kFresh;
  taken_ = std::max(taken_, seen_);
  seen_ = number_of(counter_, kKills).value_or(0);
}

bool MemoryWatch::ran_out(const ProcessEnd& end, const std::string& last_lines, bool here) {
  if (end.signal == 0) return end.code == kOutOfMemoryCode;
  if (end.signal == SIGKILL) {
    if (!here) return last_lines.find(kKernelKilled) != std::string::npos;
    const bool killed = number_of(counter_, kKills).value_or(0) > taken_;
    if (killed) ++taken_;
    return killed;
  }
  return end.signal == SIGABRT && (last_lines.find("out of memory") != std::string::npos ||
                                   last_lines.find("bad_alloc") != std::string::npos);
}

uint64_t MemoryWatch::limit_bytes() const {
  uint64_t limit = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                   static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  for (const std::string& path : bounds_) {
    uint64_t bound = 0;
    if (std::ifstream(path) >> bound && bound > 0) limit = std::min(limit, bound);
  }
  return limit;
}

std::string MemoryWatch::text(const ProcessEnd& end, bool here) const {
  if (!here) return "how much it used there is not known";
  return fmt::format("it used {:.0f} MiB, all of the job may use {:.0f} MiB",
                     static_cast<double>(end.peak_rss_bytes) / kMiB,
                     static_cast<double>(limit_bytes()) / kMiB);
}

}  // namespace flux
