#include "flux/nn/plan.h"

#include <algorithm>

namespace flux {
namespace {
uint32_t round_up(uint32_t n, uint32_t unit) {
  return (n + unit - 1) / unit * unit;
}
}  // namespace

Plan::Plan(const Graph& graph, Precision precision, uint32_t batch_max, NetMemory& memory)
    : graph_(graph),
      precision_(precision),
      batch_max_(batch_max),
      places_(graph.nodes().size()),
      memory_(memory) {
  const auto& nodes = graph_.nodes();
  for (size_t i = 0; i < nodes.size(); ++i)
    for (uint32_t in : nodes[i].inputs) places_[in].consumers.push_back(static_cast<uint32_t>(i));
  choose_types();
  choose_slices();
  choose_gradients();
  allocate();
}

void Plan::choose_types() {
  if (precision_ == Precision::kFp32) return;
  const auto& nodes = graph_.nodes();
  for (size_t i = nodes.size(); i-- > 0;) {
    for (uint32_t c : places_[i].consumers) {
      const Node& consumer = nodes[c];
      const bool wants = consumer.op == "concat" ? places_[c].type == DType::kBf16
                                                 : consumer.def->wants_bf16 != nullptr &&
                                                       consumer.def->wants_bf16(consumer, nodes[i]);
      if (wants && nodes[i].op != "label") places_[i].type = DType::kBf16;
    }
  }
}

void Plan::choose_slices() {
  const auto& nodes = graph_.nodes();
  for (size_t c = nodes.size(); c-- > 0;) {
    if (nodes[c].op != "concat") continue;
    uint32_t begin = 0;
    for (uint32_t i : nodes[c].inputs) {
      Place& place = places_[i];
      const bool free = place.concat < 0 && place.type == places_[c].type && nodes[i].op != "label";
      if (free) {
        place.concat = static_cast<int>(c);
        place.begin = begin;
        // The concat is the first to write the gradient, and whole; others add to it then.
        place.shares_gradient = place.consumers.back() == c &&
                                std::count(place.consumers.begin(), place.consumers.end(), c) == 1;
      }
      begin += nodes[i].width;
    }
  }
}

void Plan::choose_gradients() {
  const auto& nodes = graph_.nodes();
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    Place& place = places_[i];
    place.gradient_width = node.trainable ? node.width : 0;
    if (node.op == "concat") {
      uint32_t end = 0;
      for (uint32_t in : node.inputs) {
        end += nodes[in].width;
        if (nodes[in].trainable) place.gradient_width = end;
      }
    }
    place.relu_by_consumer = node.relu_output && place.consumers.size() == 1 &&
                             nodes[place.consumers[0]].def->masks_relu;
  }
}

// Whether neither the producer nor anybody but its only consumer looks at the value in backward.
bool Plan::output_unused_in_backward(size_t i) const {
  const Node& node = graph_.nodes()[i];
  if (places_[i].consumers.size() != 1) return false;
  if (node.op == "concat") {
    for (uint32_t in : node.inputs)
      if (places_[in].concat == static_cast<int>(i) && !output_unused_in_backward(in)) return false;
    return true;
  }
  if (places_[i].relu_by_consumer) return true;
  return node.def->forgets_output != nullptr && node.def->forgets_output(node);
}

bool Plan::gradient_may_replace_value(size_t i) const {
  const Place& place = places_[i];
  return place.concat < 0 && output_unused_in_backward(i) &&
         graph_.nodes()[place.consumers[0]].def->replaces_input;
}

Tensor Plan::allocate_tensor(uint32_t width, DType type) {
  // 32 elements: whole 64-byte lines in either type, and room for kernels to read in full vectors.
  // A narrow value is left dense.
  const uint32_t stride = width == 1 ? 1 : round_up(width, 32);
  const size_t bytes = static_cast<size_t>(stride) * batch_max_ * dtype_size(type);
  return {memory_.allocate(bytes), width, stride, type};
}

void Plan::allocate() {
  const auto& nodes = graph_.nodes();
  for (size_t i = nodes.size(); i-- > 0;) {
    Place& place = places_[i];
    if (place.concat >= 0) {
      const Place& whole = places_[static_cast<size_t>(place.concat)];
      place.value = slice(whole.value, place.begin, nodes[i].width);
      if (place.shares_gradient && nodes[i].trainable)
        place.gradient = slice(whole.gradient, place.begin, nodes[i].width);
    } else {
      place.value = allocate_tensor(nodes[i].width, place.type);
    }
    if (place.gradient || place.gradient_width == 0 || nodes[i].def->is_loss) continue;
    place.gradient =
        gradient_may_replace_value(i) ? place.value : allocate_tensor(nodes[i].width, place.type);
  }
}

// The first to write in backward order (last consumer, first position) overwrites.
bool Plan::gradient_overwrites(size_t consumer, size_t position) const {
  const auto& inputs = graph_.nodes()[consumer].inputs;
  const Place& place = places_[inputs[position]];
  if (consumer != place.consumers.back()) return false;
  for (size_t p = 0; p < position; ++p)
    if (inputs[p] == inputs[position]) return false;
  return true;
}

KernelArgs Plan::args(size_t i) const {
  const Node& node = graph_.nodes()[i];
  const Place& place = places_[i];
  KernelArgs args{graph_,
                  node,
                  precision_,
                  batch_max_,
                  memory_,
                  place.value,
                  place.gradient,
                  place.relu_by_consumer,
                  {},
                  0,
                  1.0F};
  for (size_t h = 0; h < graph_.heads().size(); ++h) {
    if (graph_.heads()[h].node != i) continue;
    args.head = static_cast<uint32_t>(h);
    args.head_weight = graph_.heads()[h].weight;
  }
  uint32_t begin = 0;
  for (size_t p = 0; p < node.inputs.size(); ++p) {
    const Node& source = graph_.nodes()[node.inputs[p]];
    const Place& from = places_[node.inputs[p]];
    KernelInput input;
    input.value = from.value;
    input.aliased = from.concat == static_cast<int>(i) && from.begin == begin;
    if (source.trainable && !(input.aliased && from.shares_gradient)) {
      input.gradient = from.gradient;
      input.gradient.width = from.gradient_width;
    }
    input.add = !gradient_overwrites(i, p);
    input.mask_relu = from.relu_by_consumer;
    args.inputs.push_back(input);
    begin += source.width;
  }
  return args;
}

}  // namespace flux
