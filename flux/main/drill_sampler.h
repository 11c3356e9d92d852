// DrillSampler: asks a job for its status again and again, on a thread of its own, so that a
// coordinator that hangs holds up nobody but the sampler.
//
// Survives a coordinator that is away or comes back elsewhere: with an output folder it looks up
// the address anew each time. Threads: the owner calls everything; ends with the object, within a
// few seconds. Failure: a sample without a status.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "flux/base/executor.h"
#include "flux/main/commands.h"
#include "flux/main/job_target.h"

namespace flux {

struct StatusSample {
  TimeNs at = 0;
  std::optional<JobStatus> status;
  std::optional<CoordinatorRecord> record;  // nobody's if the job runs elsewhere
  bool gone = false;                        // neither coordinator nor supervisor runs
};

class DrillSampler {
 public:
  explicit DrillSampler(TargetArguments target);
  ~DrillSampler();
  DrillSampler(const DrillSampler&) = delete;
  DrillSampler& operator=(const DrillSampler&) = delete;

  // Only a coordinator that this process started counts; 0: any.
  void only_of(int64_t supervisor) { supervisor_ = supervisor; }
  // More often while something is being timed.
  void hurry(bool on) { hurry_ = on; }
  std::vector<StatusSample> take();

 private:
  StatusSample sample() const;
  void run();

  const TargetArguments target_;
  std::atomic<int64_t> supervisor_{0};
  std::atomic<bool> hurry_{false};
  std::atomic<bool> end_{false};
  std::mutex mutex_;  // guards samples_
  std::vector<StatusSample> samples_;
  std::thread thread_;
};

}  // namespace flux
