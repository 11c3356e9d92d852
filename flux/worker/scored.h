// What a worker tells of a batch that it predicted: each head that has a label, with its examples,
// and the same by slices. The only such head has no name, several have those of their losses.
// Views of the arguments, and columns of its own for the slices. Pure.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "flux/data/batch.h"
#include "flux/metrics/metric_set.h"
#include "flux/metrics/slices.h"
#include "flux/nn/graph.h"

namespace flux {

// One head that has a label.
struct LabelledHead {
  size_t index = 0;  // in Graph::heads()
  MetricKey key;     // of the whole head
  ScoredBatch batch;
};
// `predictions`: [heads][batch].
std::vector<LabelledHead> labelled_heads(const Graph& graph, const Batch& batch,
                                         const float* predictions);

// Whether what the network minimises is the log loss: one logistic loss, and nobody weighs it.
bool minimises_log_loss(const Graph& graph);

// The slices of a batch, slot after slot.
std::vector<Slice> slices_of(const Batch& batch, std::span<const SliceSlot> slots);

class ScoredBatches {
 public:
  ScoredBatches(const Graph& graph, const Batch& batch, const float* predictions,
                std::span<const SliceSlot> slots);
  std::span<const KeyedBatch> all() const { return all_; }

 private:
  struct Columns {
    std::vector<float> predictions, labels, weights;
    std::vector<uint64_t> groups;
  };
  void add_slice(const KeyedBatch& whole, const Slice& slice);

  std::vector<KeyedBatch> all_;
  std::deque<Columns> columns_;
};

}  // namespace flux
