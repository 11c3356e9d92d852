// layer_norm: each position of each example brought to mean 0 and variance 1 over its features,
// then scaled and moved by trainable vectors.
#include <cmath>

#include "flux/nn/row_operator.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  context.node.length = context.inputs[0]->length;
  context.node.width = context.inputs[0]->width;
  const int64_t dim = context.node.dim();
  if (dim < 2)
    return context.fail(fmt::format("needs two features or more, got {}", context.shapes()));
  add_constant_parameter(context, "scale", {dim}, 1.0F);
  add_constant_parameter(context, "bias", {dim}, 0.0F);
  return Status::ok();
}

struct LayerNorm : RowFunction {
  LayerNorm(const Graph&, const Node& node)
      : length(node.length), dim(node.dim()), epsilon(node.float_attr("epsilon")) {}
  size_t scratch() const { return 2 * dim; }
  // Writes the normalised features; returns what they were multiplied with.
  template <typename T>
  T normalise(const T* x, T* unit) const {
    const T mean = sum_of(x, dim) / static_cast<T>(dim);
    for (size_t c = 0; c < dim; ++c) unit[c] = x[c] - mean;
    const T variance = dot_of(unit, unit, dim) / static_cast<T>(dim);
    const T factor = 1 / std::sqrt(variance + static_cast<T>(epsilon));
    for (size_t c = 0; c < dim; ++c) unit[c] *= factor;
    return factor;
  }
  template <typename T>
  void forward(const Row<T>& row) const {
    const T *scale = row.p, *bias = row.p + dim;
    for (size_t t = 0; t < length; ++t) {
      T* y = row.y + t * dim;
      normalise(row.x[0] + t * dim, y);
      for (size_t c = 0; c < dim; ++c) y[c] = y[c] * scale[c] + bias[c];
    }
  }
  void backward(const RowGradient& row) const {
    float *unit = row.scratch, *g = row.scratch + dim;
    for (size_t t = 0; t < length; ++t) {
      const float factor = normalise(row.x[0] + t * dim, unit);
      const float* dy = row.dy + t * dim;
      for (size_t c = 0; c < dim; ++c) row.dp[c] += dy[c] * unit[c];
      add_scaled(1.0F, dy, dim, row.dp + dim);
      for (size_t c = 0; c < dim; ++c) g[c] = dy[c] * row.p[c];
      const float mean = sum_of(g, dim) / static_cast<float>(dim);
      const float along = dot_of(g, unit, dim) / static_cast<float>(dim);
      float* dx = row.dx[0] + t * dim;
      for (size_t c = 0; c < dim; ++c) dx[c] = factor * (g[c] - mean - unit[c] * along);
    }
  }

  size_t length, dim;
  double epsilon;
};

}  // namespace

OperatorDef operator_layer_norm() {
  return row_operator<LayerNorm>(
      "layer_norm",
      "Features of each position brought to mean 0 and variance 1, then scale * x + bias.", 1, 1,
      infer, {float_attribute("epsilon", 1e-5, 1e-12, 1, "added to the variance")});
}

}  // namespace flux
