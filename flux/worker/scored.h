// What a worker tells of a batch that it predicted: which heads and slices, with which examples.
// The one place that knows how a Batch becomes scored examples. Views of its arguments.
#pragma once

#include "flux/data/batch.h"
#include "flux/metrics/metric_set.h"

namespace flux {

inline KeyedBatch scored_batch(const Batch& batch, const float* predictions) {
  return {{}, {{predictions, batch.size}, {batch.labels.data(), batch.size}, {}, {}}};
}

}  // namespace flux
