// What a worker tells of a batch that it predicted: each head that has a label, with its examples.
// The only such head has no name, several have those of their losses. Views of its arguments.
#pragma once

#include <vector>

#include "flux/data/batch.h"
#include "flux/metrics/metric_set.h"
#include "flux/nn/graph.h"

namespace flux {

// `predictions`: [heads][batch].
inline std::vector<KeyedBatch> scored_batches(const Graph& graph, const Batch& batch,
                                              const float* predictions) {
  std::vector<KeyedBatch> out;
  for (size_t h = 0; h < graph.heads().size(); ++h) {
    const Head& head = graph.heads()[h];
    if (head.label < 0) continue;
    const float* labels = batch.labels.data() + static_cast<size_t>(head.label) * batch.size;
    out.push_back({{head.name, ""},
                   {{predictions + h * batch.size, batch.size},
                    {labels, batch.size},
                    batch.weights,
                    batch.groups}});
  }
  if (out.size() == 1) out.front().key.head.clear();
  return out;
}

}  // namespace flux
