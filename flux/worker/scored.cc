#include "flux/worker/scored.h"

#include "flux/nn/operator.h"

namespace flux {

std::vector<LabelledHead> labelled_heads(const Graph& graph, const Batch& batch,
                                         const float* predictions) {
  std::vector<LabelledHead> out;
  for (size_t h = 0; h < graph.heads().size(); ++h) {
    const Head& head = graph.heads()[h];
    if (head.label < 0) continue;
    const float* labels = batch.labels.data() + static_cast<size_t>(head.label) * batch.size;
    const bool class_numbers = graph.nodes()[head.node].op == "softmax_cross_entropy";
    out.push_back({h,
                   {head.name, ""},
                   {{predictions + h * batch.size, batch.size},
                    {labels, batch.size},
                    batch.weights,
                    batch.groups,
                    class_numbers}});
  }
  if (out.size() == 1) out.front().key.head.clear();
  return out;
}

bool minimises_log_loss(const Graph& graph) {
  if (graph.heads().size() != 1) return false;
  const Head& head = graph.heads().front();
  const Node& node = graph.nodes()[head.node];
  return node.op == "logistic_loss" && node.inputs.size() == 2 && head.weight == 1.0F;
}

std::vector<Slice> slices_of(const Batch& batch, std::span<const SliceSlot> slots) {
  std::vector<Slice> out;
  for (size_t s = 0; s < slots.size(); ++s) {
    const std::span<const uint64_t> values(batch.slices.data() + s * batch.size, batch.size);
    for (Slice& slice : split_slices(slots[s], values)) out.push_back(std::move(slice));
  }
  return out;
}

ScoredBatches::ScoredBatches(const Graph& graph, const Batch& batch, const float* predictions,
                             std::span<const SliceSlot> slots) {
  for (const LabelledHead& head : labelled_heads(graph, batch, predictions))
    all_.push_back({head.key, head.batch});
  const std::vector<Slice> slices = slices_of(batch, slots);
  const size_t heads = all_.size();
  for (size_t h = 0; h < heads; ++h)
    for (const Slice& slice : slices) add_slice(KeyedBatch(all_[h]), slice);
}

void ScoredBatches::add_slice(const KeyedBatch& whole, const Slice& slice) {
  Columns& own = columns_.emplace_back();
  const ScoredBatch& from = whole.batch;
  for (const uint32_t i : slice.examples) {
    own.predictions.push_back(from.predictions[i]);
    own.labels.push_back(from.labels[i]);
    if (!from.weights.empty()) own.weights.push_back(from.weights[i]);
    if (!from.groups.empty()) own.groups.push_back(from.groups[i]);
  }
  KeyedBatch part{whole.key,
                  {own.predictions, own.labels, own.weights, own.groups, from.class_numbers}};
  part.key.slice = slice.name;
  all_.push_back(std::move(part));
}

}  // namespace flux
