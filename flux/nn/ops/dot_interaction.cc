// dot_interaction: the inner products of all pairs of slots, side by side (DLRM). Slots may come
// from several inputs of the same dim, such as embeddings [B,slots,dim] and one more vector
// [B,dim].
#include "flux/nn/row_operator.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  uint32_t slots = 0;
  for (const Node* input : context.inputs) {
    slots += input->length;
    if (input->dim() != context.inputs[0]->dim())
      return context.fail(
          fmt::format("all inputs must have the same number of features per position, got {}",
                      context.shapes()));
  }
  const bool self = context.node.bool_attr("self");
  if (slots < (self ? 1 : 2))
    return context.fail(fmt::format("needs two positions or more, got {}", context.shapes()));
  context.node.width = slots * (self ? slots + 1 : slots - 1) / 2;
  return Status::ok();
}

struct DotInteraction : RowFunction {
  DotInteraction(const Graph& graph, const Node& node)
      : self(node.bool_attr("self")), dim(input_of(graph, node, 0).dim()) {
    for (size_t i = 0; i < node.inputs.size(); ++i)
      for (size_t t = 0; t < input_of(graph, node, i).length; ++t) places.push_back({i, t * dim});
  }
  struct Place {
    size_t input, offset;
  };
  size_t scratch() const { return places.size() * dim; }
  template <typename T>
  void forward(const Row<T>& row) const {
    const size_t slots = places.size();
    for (size_t j = 0; j < slots; ++j)
      for (size_t c = 0; c < dim; ++c) row.scratch[c * slots + j] = at(row, j)[c];
    T* y = row.y;
    for (size_t i = 0; i < slots; ++i) {
      const size_t pairs = i + (self ? 1 : 0);
      row_times_matrix(at(row, i), dim, row.scratch, slots, pairs, y);
      y += pairs;
    }
  }
  template <typename T>
  const T* at(const Row<T>& row, size_t slot) const {
    return row.x[places[slot].input] + places[slot].offset;
  }
  void backward(const RowGradient& row) const {
    const float* dy = row.dy;
    for (size_t i = 0; i < places.size(); ++i) {
      for (size_t j = 0; j < i + (self ? 1 : 0); ++j, ++dy) {
        const Place &a = places[i], &b = places[j];
        add_scaled(*dy, row.x[b.input] + b.offset, dim, row.dx[a.input] + a.offset);
        add_scaled(*dy, row.x[a.input] + a.offset, dim, row.dx[b.input] + b.offset);
      }
    }
  }

  bool self;
  size_t dim;
  std::vector<Place> places;  // of each slot
};

}  // namespace

OperatorDef operator_dot_interaction() {
  return row_operator<DotInteraction>(
      "dot_interaction",
      "Inner products of all pairs of positions, in the order (1,0), (2,0), (2,1), ...", 1, 64,
      infer, {bool_attribute("self", false, "whether each also meets itself")});
}

}  // namespace flux
