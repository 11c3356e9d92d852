// Replay: trains a job on one core with every gradient exactly so many batches old, from a seed.
//
// What many asynchronous workers do to a model, on a small machine and the same every time: a batch
// pulls its rows and dense values and is computed, and its gradient is applied when `staleness`
// later batches have pulled theirs. Blocks, plan, network, server and evaluation are those of a
// run; without staleness the model has the bits of a run with `deterministic: true`. A section ends
// with all of its gradients applied, as in a run. Nothing is written.
// Threads: the caller's. Memory: `staleness` batches with their gradients, at most memory_max.
// Failure: Status of the data; kInvalid for a job that cannot be replayed, or too much staleness. A
// model that diverges is no failure: ReplayResult says so.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/data/dataset.h"
#include "flux/main/job_roles.h"
#include "flux/metrics/metric_values.h"

namespace flux {

// The data of a job, cut once for any number of replays.
struct ReplayData {
  std::vector<std::shared_ptr<const Dataset>> passes;
  std::shared_ptr<const Dataset> test;
};
Result<ReplayData> open_replay_data(const Job& job, const std::atomic<bool>* stop);

struct ReplayOptions {
  uint32_t staleness = 0;  // batches that are applied between the pull of a batch and its push
  // Defences to be tried. The learning rates of rows and of dense values are divided by
  // (1 + staleness) to this power.
  double rows_power = 0, dense_power = 0;
  // Delay compensation (Zheng et al. 2017, adaptive): the gradient g that was computed at w_then
  // becomes g + compensation |g| (w_now - w_then).
  double compensation = 0;
  uint64_t memory_max = 4ULL << 30;  // bytes of pending batches
  const std::atomic<bool>* stop = nullptr;
};

// What a batch brings and takes, on average.
struct ReplayTraffic {
  double keys = 0;    // distinct
  double floats = 0;  // of their rows in all tables
  uint64_t dense = 0;
  // To pull: a key up, values down; to push: a key, a count and values up.
  double bytes(uint32_t value_bytes) const {
    return keys * (8 + 8 + 4) + 2 * value_bytes * (floats + static_cast<double>(dense));
  }
};

struct ReplayResult {
  uint32_t staleness = 0;
  uint64_t examples = 0, batches = 0;
  uint64_t refused = 0;  // batches whose loss or gradient was not finite
  std::string diverged;  // why the test could not be predicted; or empty
  MetricReport test;
  ReplayTraffic traffic;
  uint64_t model_hash = 0;
  double seconds = 0;

  const MetricValues* whole() const { return diverged.empty() ? test.whole() : nullptr; }
};

Result<ReplayResult> replay(const RoleJob& role, const ReplayData& data,
                            const ReplayOptions& options);

}  // namespace flux
