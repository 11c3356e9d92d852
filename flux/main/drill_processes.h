// The processes of a job as a drill sees them: found by the numbers in its status, touched only
// after a look at what they are.
//
// A process number may have been given to somebody else since the status was made. So every deed
// first takes a handle (pidfd) that stays with the process, then looks whether that process is this
// program in that role under that name, and only then signals through the handle.
// Threads: any; values. Failure: kNotFound if the process is gone or is another one; kInvalid if it
// cannot be reached from here (another host), with what to do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/coordinator/job_status.h"
#include "flux/main/cluster_folder.h"
#include "flux/main/drill_plan.h"

namespace flux {

struct RoleProcess {
  std::string role;  // coordinator, server, worker
  std::string name;  // worker-0
  std::string host, address;
  int64_t pid = 0;
};

// Everybody, sorted by role and name; the coordinator only if its record is known.
std::vector<RoleProcess> processes_of(const JobStatus& status, const CoordinatorRecord* record);
// The one that a choice means, "any of them" settled by the draw. kNotFound: not there now.
Result<RoleProcess> choose(const std::vector<RoleProcess>& all, const RoleChoice& choice,
                           uint64_t draw);

Status signal_process(const RoleProcess& process, int number);
// Whether it was started with --faults, so that it obeys the faults file.
bool obeys_faults(const RoleProcess& process);

// How memory was taken away, for people.
struct OomDone {
  std::string how;
  std::string cgroup;          // folder to remove when the process is gone; may be empty
  uint64_t address_space = 0;  // the limit before, without a cgroup
};
// A cgroup of its own with almost no memory where cgroup v2 can be written, so that the kernel's
// OOM killer comes; else a limit on its address space, so that its next allocations fail.
Result<OomDone> take_memory(const RoleProcess& process);
// It has as much as before; nothing happens to one that is gone.
void give_memory_back(const RoleProcess& process, const OomDone& done);

}  // namespace flux
