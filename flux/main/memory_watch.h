// What the system says about memory: how much there is, and whether it killed somebody for it.
//
// The kernel kills by SIGKILL and tells it in the control group's counters; a program that asks for
// more than it gets ends by itself, with kOutOfMemoryCode or an abort whose last lines say so.
// Threads: one owner. Failure: none; what cannot be read is 0.
#pragma once

#include <cstdint>
#include <string>

#include "flux/platform/platform.h"

namespace flux {

constexpr int kOutOfMemoryCode = 71;

// From now on this process says so and ends with kOutOfMemoryCode when it gets no more memory.
void end_when_out_of_memory();

// For drills: asks once for more memory than a limit on the address space leaves, which is the end
// of this process. Without such a limit nothing happens.
void ask_for_more_memory();

class MemoryWatch {
 public:
  // Where the system tells it; others only for tests.
  explicit MemoryWatch(std::string groups = "/sys/fs/cgroup",
                       std::string own = "/proc/self/cgroup");
  // Whether this end of a process was for want of memory; `last_lines` of its log.
  bool ran_out(const ProcessEnd& end, const std::string& last_lines);
  // That this job may use: the control group's bound, or all of the machine's.
  uint64_t limit_bytes() const;

 private:
  uint64_t kills() const;

  std::string group_;  // folder; empty: none
  uint64_t kills_ = 0;
};

}  // namespace flux
