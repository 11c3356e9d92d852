// What the system says about memory: how much there is, and whether it killed somebody for it.
//
// The kernel kills by SIGKILL and counts it: in the control group's memory.events (version 2) or
// memory.oom_control (version 1); where neither can be read, for the whole machine in /proc/vmstat,
// which may be about others; that is also what is known of other hosts (kKernelKilled). A program
// that asks for more than it gets ends by itself, with kOutOfMemoryCode or an abort whose last
// lines say so. Threads: one owner. Failure: none; what cannot be read is 0.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flux/base/executor.h"
#include "flux/platform/platform.h"

namespace flux {

constexpr int kOutOfMemoryCode = 71;

// From now on this process says so and ends with kOutOfMemoryCode when it gets no more memory.
void end_when_out_of_memory();

// For drills: asks once for more memory than a limit on the address space leaves, which is the end
// of this process. Without such a limit nothing happens.
void ask_for_more_memory();

// Where the system tells it; others only for tests.
struct MemoryPlaces {
  std::string groups = "/sys/fs/cgroup";
  std::string own = "/proc/self/cgroup";
  std::string machine = "/proc/vmstat";
};

class MemoryWatch {
 public:
  explicit MemoryWatch(const MemoryPlaces& places = {});
  // Call it now and then: a kill that was counted more than kFresh before an end is not about it.
  void look(TimeNs now);
  static constexpr TimeNs kFresh = 10 * kSecond;
  // Whether this end of a process was for want of memory; `last_lines` of its log. `here`: it ran
  // on this machine.
  bool ran_out(const ProcessEnd& end, const std::string& last_lines, bool here);
  // That this job may use: the least bound of its control group and those above it, or all of the
  // machine's.
  uint64_t limit_bytes() const;
  // "it used 12 MiB, all of the job may use 100 MiB"
  std::string text(const ProcessEnd& end, bool here) const;

 private:
  struct Version;
  void find_group(const Version& version, const std::string& mount, std::string path);

  std::string counter_;              // file with a line "oom_kill N"
  std::vector<std::string> bounds_;  // files: of the own group and those above it
  uint64_t taken_ = 0;               // kills that are known to be about somebody, or old
  uint64_t seen_ = 0;                // kills at the last look
  TimeNs look_at_ = 0;
};

}  // namespace flux
