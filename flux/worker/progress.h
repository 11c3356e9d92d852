// Progress: what a trainer thread has done so far, and how long each stage of it took.
// Plain values; whoever owns one guards it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "flux/api/job_port.h"
#include "flux/base/latency.h"
#include "flux/metrics/progressive_set.h"

namespace flux {

enum class Stage : uint8_t { kFeed, kRead, kPlan, kPull, kCompute, kPush };
constexpr size_t kStages = 6;
const char* stage_name(Stage stage);

// What a trainer has done so far.
struct Progress {
  uint64_t examples = 0;
  uint64_t batches = 0;
  double loss_sum = 0;
  uint64_t duplicates = 0;  // shard answers "had it before"
  LatencyHistogram push_times;
  AgeHistogram push_ages;
  std::array<int64_t, kStages> stage_ns{};
  std::vector<PhaseReport> phases;  // by the number of the network; without AUC, see metrics
  uint32_t last_phase = 0;          // whose batch was the last
  ProgressiveSet metrics;           // each prediction made before its example was learnt
};

}  // namespace flux
