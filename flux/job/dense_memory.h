// What the dense parameters of a job need of memory, before any of it is asked for.
// Pure functions. Failure: kInvalid that names the layer with the most parameters.
#pragma once

#include <cstdint>

#include "flux/base/status.h"
#include "flux/job/job.h"

namespace flux {

// Weights, gradients and the optimizer's state, each once: a run needs more.
uint64_t dense_bytes(const Job& job, const Graphs& graphs);
// Refuses a job whose dense_bytes() are more than `limit`, which this machine may use.
Status check_dense_memory(const Job& job, const Graphs& graphs, uint64_t limit);

// In a cluster servers share the state, but each worker has all weights: no machine has memory for
// more than these. build_graphs() refuses them.
constexpr uint64_t kDenseParametersMax = uint64_t{1} << 34;
Status check_dense_count(const Graph& graph);

}  // namespace flux
