// JudgedHead: which predictions of a batch are held against which labels in the metrics of a job:
// those of the first head that has a label. Pure; views of its arguments.
#pragma once

#include <cstdint>

#include "flux/data/batch.h"
#include "flux/nn/graph.h"

namespace flux {

struct JudgedHead {
  size_t index = 0;
  const float* labels = nullptr;  // [batch], null: no head has a label
  const float* predictions = nullptr;
};

inline JudgedHead judged_head(const Graph& graph, const Batch& batch, const float* predictions) {
  for (size_t h = 0; h < graph.heads().size(); ++h) {
    const int label = graph.heads()[h].label;
    if (label < 0) continue;
    return {h, batch.labels.data() + static_cast<size_t>(label) * batch.size,
            predictions + h * batch.size};
  }
  return {};
}

}  // namespace flux
