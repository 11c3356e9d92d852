#include "flux/main/memory_watch.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <new>
#include <utility>

#include <sys/resource.h>
#include <unistd.h>

namespace flux {
namespace {

constexpr size_t kMoreBytes = size_t{1} << 30;  // more than an allocator has put by

void say_and_end() {
  constexpr char kText[] = "flux: out of memory\n";
  const ssize_t ignored = ::write(STDERR_FILENO, kText, sizeof kText - 1);
  (void)ignored;
  _exit(kOutOfMemoryCode);
}

// The number after `name` in a file of "name number" lines; 0 if there is none.
uint64_t number_of(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::string word;
  uint64_t number = 0;
  while (file >> word >> number)
    if (word == name) return number;
  return 0;
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

MemoryWatch::MemoryWatch(std::string groups, std::string own) {
  std::ifstream file(own);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("0::/")) group_ = groups + line.substr(3);
  // In a container the path may be the one outside.
  if (!group_.empty() && !std::ifstream(group_ + "/memory.events")) group_ = std::move(groups);
  kills_ = kills();
}

uint64_t MemoryWatch::kills() const {
  return group_.empty() ? 0 : number_of(group_ + "/memory.events", "oom_kill");
}

bool MemoryWatch::ran_out(const ProcessEnd& end, const std::string& last_lines) {
  if (end.signal == 0) return end.code == kOutOfMemoryCode;
  if (end.signal == SIGKILL) {
    const uint64_t now = kills();
    return now > std::exchange(kills_, now);
  }
  return end.signal == SIGABRT && (last_lines.find("out of memory") != std::string::npos ||
                                   last_lines.find("bad_alloc") != std::string::npos);
}

uint64_t MemoryWatch::limit_bytes() const {
  uint64_t limit = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                   static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  uint64_t bound = 0;
  if (!group_.empty() && std::ifstream(group_ + "/memory.max") >> bound && bound > 0)
    limit = std::min(limit, bound);
  return limit;
}

}  // namespace flux
