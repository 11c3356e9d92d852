// bi_interaction: the sum of x_i * x_j (element by element) over all pairs i < j of slots, by half
// of (sum x)^2 - sum x^2 (neural factorization machines).
#include "flux/nn/interactions.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  FLUX_RETURN_IF_ERROR(check_slots(context));
  context.node.width = context.inputs[0]->dim();
  return Status::ok();
}

struct BiInteraction : RowFunction {
  BiInteraction(const Graph& graph, const Node& node)
      : slots(input_of(graph, node, 0).length), dim(node.width) {}
  size_t scratch() const { return dim; }
  template <typename T>
  void forward(const Row<T>& row) const {
    const T* x = row.x[0];
    sum_slots(x, slots, dim, row.scratch);
    for (size_t c = 0; c < dim; ++c) row.y[c] = row.scratch[c] * row.scratch[c];
    for (size_t s = 0; s < slots; ++s)
      for (size_t c = 0; c < dim; ++c) row.y[c] -= x[s * dim + c] * x[s * dim + c];
    for (size_t c = 0; c < dim; ++c) row.y[c] *= T(0.5);
  }
  void backward(const RowGradient& row) const {
    const float* x = row.x[0];
    sum_slots(x, slots, dim, row.scratch);
    for (size_t s = 0; s < slots; ++s)
      for (size_t c = 0; c < dim; ++c)
        row.dx[0][s * dim + c] = row.dy[c] * (row.scratch[c] - x[s * dim + c]);
  }

  size_t slots, dim;
};

}  // namespace

OperatorDef operator_bi_interaction() {
  return row_operator<BiInteraction>(
      "bi_interaction",
      "Sum of the element-wise products of all pairs of slots of [B,slots,dim]: [B,dim].", 1, 1,
      infer);
}

}  // namespace flux
