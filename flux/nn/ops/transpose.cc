// transpose: features and positions exchanged, [B,T,d] to [B,d,T].
#include "flux/nn/row_operator.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  context.node.width = context.inputs[0]->width;
  context.node.length = context.inputs[0]->dim();
  return Status::ok();
}

struct Transpose : RowFunction {
  Transpose(const Graph&, const Node& node) : length(node.dim()), dim(node.length) {}
  template <typename T>
  void forward(const Row<T>& row) const {
    for (size_t c = 0; c < dim; ++c)
      for (size_t t = 0; t < length; ++t) row.y[c * length + t] = row.x[0][t * dim + c];
  }
  void backward(const RowGradient& row) const {
    for (size_t t = 0; t < length; ++t)
      for (size_t c = 0; c < dim; ++c) row.dx[0][t * dim + c] = row.dy[c * length + t];
  }

  size_t length, dim;  // of the input
};

}  // namespace

OperatorDef operator_transpose() {
  return row_operator<Transpose>(
      "transpose", "Features and positions exchanged: [B,T,d] to [B,d,T].", 1, 1, infer);
}

}  // namespace flux
