// attention_features: for each position k of a sequence and a query q, [q, k, q - k, q * k]: what
// DIN's attention looks at.
#include "flux/nn/row_operator.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  const Node &query = *context.inputs[0], &keys = *context.inputs[1];
  if (query.length != 1 || query.width != keys.dim())
    return context.fail(
        fmt::format("inputs must be a query [B,d] and keys [B,T,d], got {}", context.shapes()));
  context.node.length = keys.length;
  context.node.width = 4 * keys.width;
  return Status::ok();
}

struct AttentionFeatures : RowFunction {
  AttentionFeatures(const Graph&, const Node& node) : length(node.length), dim(node.dim() / 4) {}
  template <typename T>
  void forward(const Row<T>& row) const {
    const T *q = row.x[0], *k = row.x[1];
    T* y = row.y;
    for (size_t t = 0; t < length; ++t, k += dim, y += 4 * dim) {
      std::copy_n(q, dim, y);
      std::copy_n(k, dim, y + dim);
      for (size_t c = 0; c < dim; ++c) y[2 * dim + c] = q[c] - k[c];
      for (size_t c = 0; c < dim; ++c) y[3 * dim + c] = q[c] * k[c];
    }
  }
  void backward(const RowGradient& row) const {
    const float *q = row.x[0], *k = row.x[1], *dy = row.dy;
    float *dq = row.dx[0], *dk = row.dx[1];
    for (size_t t = 0; t < length; ++t, k += dim, dk += dim, dy += 4 * dim) {
      for (size_t c = 0; c < dim; ++c) {
        dq[c] += dy[c] + dy[2 * dim + c] + dy[3 * dim + c] * k[c];
        dk[c] += dy[dim + c] - dy[2 * dim + c] + dy[3 * dim + c] * q[c];
      }
    }
  }

  size_t length, dim;
};

}  // namespace

OperatorDef operator_attention_features() {
  return row_operator<AttentionFeatures>(
      "attention_features",
      "[q, k, q - k, q * k] of a query [B,d] and each position of keys [B,T,d]: [B,T,4d].", 2, 2,
      infer);
}

}  // namespace flux
