// l2_normalize: each position of each example brought to length 1; one shorter than 1e-6 counts as
// that long.
#include <cmath>

#include "flux/nn/row_operator.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  context.node.length = context.inputs[0]->length;
  context.node.width = context.inputs[0]->width;
  return Status::ok();
}

struct L2Normalize : RowFunction {
  L2Normalize(const Graph&, const Node& node) : length(node.length), dim(node.dim()) {}
  template <typename T>
  T factor(const T* x) const {
    return 1 / std::max(std::sqrt(dot_of(x, x, dim)), T(1e-6));
  }
  template <typename T>
  void forward(const Row<T>& row) const {
    for (size_t t = 0; t < length; ++t) {
      const T* x = row.x[0] + t * dim;
      const T by = factor(x);
      for (size_t c = 0; c < dim; ++c) row.y[t * dim + c] = x[c] * by;
    }
  }
  void backward(const RowGradient& row) const {
    for (size_t t = 0; t < length; ++t) {
      const float *x = row.x[0] + t * dim, *dy = row.dy + t * dim;
      const float by = factor(x), along = dot_of(dy, x, dim) * by * by;
      for (size_t c = 0; c < dim; ++c) row.dx[0][t * dim + c] = by * (dy[c] - along * x[c]);
    }
  }

  size_t length, dim;
};

}  // namespace

OperatorDef operator_l2_normalize() {
  return row_operator<L2Normalize>(
      "l2_normalize", "Features of each position divided by their Euclidean length.", 1, 1, infer);
}

}  // namespace flux
