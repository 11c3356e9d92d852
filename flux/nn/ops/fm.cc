// fm: the second-order term of a factorization machine, the sum of <x_i, x_j> over all pairs i < j
// of slots, by half of (sum x)^2 - sum x^2.
#include "flux/nn/interactions.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  FLUX_RETURN_IF_ERROR(check_slots(context));
  context.node.width = 1;
  return Status::ok();
}

struct Fm : RowFunction {
  Fm(const Graph& graph, const Node& node)
      : slots(input_of(graph, node, 0).length), dim(input_of(graph, node, 0).dim()) {}
  size_t scratch() const { return dim; }
  template <typename T>
  void forward(const Row<T>& row) const {
    const T* x = row.x[0];
    sum_slots(x, slots, dim, row.scratch);
    *row.y = T(0.5) * (dot_of(row.scratch, row.scratch, dim) - dot_of(x, x, slots * dim));
  }
  void backward(const RowGradient& row) const {
    const float* x = row.x[0];
    sum_slots(x, slots, dim, row.scratch);
    for (size_t s = 0; s < slots; ++s)
      for (size_t c = 0; c < dim; ++c)
        row.dx[0][s * dim + c] = *row.dy * (row.scratch[c] - x[s * dim + c]);
  }

  size_t slots, dim;
};

}  // namespace

OperatorDef operator_fm() {
  return row_operator<Fm>(
      "fm", "Sum of the inner products of all pairs of slots of [B,slots,dim]: [B,1].", 1, 1,
      infer);
}

}  // namespace flux
