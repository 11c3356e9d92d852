// prelu: x where it is positive, else slope * x with a trainable slope for each feature.
#include "flux/nn/row_operator.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  context.node.length = context.inputs[0]->length;
  context.node.width = context.inputs[0]->width;
  add_constant_parameter(context, "slope", {context.node.dim()}, 0.25F);
  return Status::ok();
}

struct Prelu : RowFunction {
  Prelu(const Graph&, const Node& node) : length(node.length), dim(node.dim()) {}
  template <typename T>
  void forward(const Row<T>& row) const {
    for (size_t t = 0; t < length; ++t) {
      const T* x = row.x[0] + t * dim;
      for (size_t c = 0; c < dim; ++c) row.y[t * dim + c] = x[c] > 0 ? x[c] : row.p[c] * x[c];
    }
  }
  void backward(const RowGradient& row) const {
    for (size_t t = 0; t < length; ++t) {
      const float *x = row.x[0] + t * dim, *dy = row.dy + t * dim;
      for (size_t c = 0; c < dim; ++c) {
        row.dx[0][t * dim + c] = x[c] > 0 ? dy[c] : row.p[c] * dy[c];
        row.dp[c] += x[c] > 0 ? 0.0F : x[c] * dy[c];
      }
    }
  }

  size_t length, dim;
};

}  // namespace

OperatorDef operator_prelu() {
  return row_operator<Prelu>(
      "prelu", "x where it is positive, else slope * x; a trainable slope for each feature.", 1, 1,
      infer);
}

}  // namespace flux
