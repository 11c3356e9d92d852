// Progress: what a trainer has done so far, and how long each stage of it took. ProgressBook: the
// same, written by the trainer's thread and read by others.
// Threads: a Progress is plain values; a ProgressBook has a lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "flux/api/job_port.h"
#include "flux/base/latency.h"
#include "flux/cluster/training_health.h"
#include "flux/metrics/progressive_set.h"

namespace flux {

enum class Stage : uint8_t { kFeed, kRead, kPlan, kPull, kCompute, kPush };
constexpr size_t kStages = 6;
const char* stage_name(Stage stage);

struct Progress {
  uint64_t examples = 0;
  uint64_t batches = 0;
  double loss_sum = 0;
  uint64_t duplicates = 0;  // shard answers "had it before"
  uint64_t resends = 0;     // pushes that were sent again
  LatencyHistogram push_times;
  AgeHistogram push_ages;
  std::array<int64_t, kStages> stage_ns{};
  std::vector<PhaseReport> phases;  // by the number of the network; without AUC, see metrics
  uint32_t last_phase = 0;          // whose batch was the last
  ProgressiveSet metrics;           // each prediction made before its example was learnt
  std::vector<HealthPiece> health;  // worker/batch_health.h
};

class ProgressBook {
 public:
  template <typename F>
  void change(const F& change) {
    const std::lock_guard lock(mutex_);
    change(&progress_);
  }
  // `more` adds to the copy what is guarded by the same lock.
  template <typename F>
  Progress read(const F& more) const {
    const std::lock_guard lock(mutex_);
    Progress copy = progress_;
    more(&copy);
    return copy;
  }

 private:
  mutable std::mutex mutex_;
  Progress progress_;
};

}  // namespace flux
