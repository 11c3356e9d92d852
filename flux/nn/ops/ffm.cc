// ffm: the second-order term of a field-aware factorization machine. Slot i has one vector of k
// numbers for each slot j, side by side; the result is the sum of <x_i for j, x_j for i> over all
// pairs i < j.
#include "flux/nn/interactions.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  FLUX_RETURN_IF_ERROR(check_slots(context));
  const Node& input = *context.inputs[0];
  if (input.dim() % input.length != 0)
    return context.fail(
        fmt::format("each of the {} slots must have a multiple of {} features, one vector for "
                    "each slot, got {}",
                    input.length, input.length, context.shapes()));
  context.node.width = 1;
  return Status::ok();
}

struct Ffm : RowFunction {
  Ffm(const Graph& graph, const Node& node)
      : slots(input_of(graph, node, 0).length), dim(input_of(graph, node, 0).dim() / slots) {}
  // Slot i's vector for slot j.
  size_t at(size_t i, size_t j) const { return (i * slots + j) * dim; }
  template <typename T>
  void forward(const Row<T>& row) const {
    const T* x = row.x[0];
    *row.y = 0;
    for (size_t i = 0; i < slots; ++i)
      for (size_t j = i + 1; j < slots; ++j) *row.y += dot_of(x + at(i, j), x + at(j, i), dim);
  }
  void backward(const RowGradient& row) const {
    const float* x = row.x[0];
    for (size_t i = 0; i < slots; ++i)
      for (size_t j = 0; j < slots; ++j)
        if (i != j) add_scaled(*row.dy, x + at(j, i), dim, row.dx[0] + at(i, j));
  }

  size_t slots, dim;
};

}  // namespace

OperatorDef operator_ffm() {
  return row_operator<Ffm>(
      "ffm", "Field-aware pairs of slots of [B,slots,slots * k]: sum of <x_i for j, x_j for i>.", 1,
      1, infer);
}

}  // namespace flux
