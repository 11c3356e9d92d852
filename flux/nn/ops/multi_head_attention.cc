// multi_head_attention: scaled dot-product attention of queries [B,T,d] over keys [B,S,d] and
// values [B,S,d], each head on its own part of the features. The projections before and behind it
// are fc layers with per_position: true.
#include <cmath>

#include "flux/nn/row_operator.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  const Node &q = *context.inputs[0], &k = *context.inputs[1], &v = *context.inputs[2];
  const int64_t heads = context.node.int_attr("heads");
  if (q.dim() != k.dim() || k.length != v.length)
    return context.fail(
        fmt::format("inputs must be queries [B,T,d], keys [B,S,d] and values [B,S,e], got {}",
                    context.shapes()));
  if (q.dim() % heads != 0 || v.dim() % heads != 0)
    return context.fail(fmt::format("the features must be a multiple of 'heads: {}', got {}", heads,
                                    context.shapes()));
  if (context.inputs.size() > 3 && context.inputs[3]->width != k.length)
    return context.fail(fmt::format("the mask must be [B,{}], one number for each key, got {}",
                                    k.length, context.shapes()));
  context.node.length = q.length;
  context.node.width = q.length * v.dim();
  return Status::ok();
}

struct MultiHeadAttention : RowFunction {
  MultiHeadAttention(const Graph& graph, const Node& node)
      : heads(static_cast<size_t>(node.int_attr("heads"))),
        queries(node.length),
        keys(input_of(graph, node, 1).length),
        dim(input_of(graph, node, 0).dim()),
        out(node.dim()),
        masked(node.inputs.size() > 3),
        scale(1.0F / std::sqrt(static_cast<float>(dim) / static_cast<float>(heads))) {}
  size_t scratch() const { return 3 * keys; }

  // The weights of head h for query t.
  template <typename T>
  void weights(const T* const* x, size_t h, size_t t, T* w) const {
    const size_t part = dim / heads;
    for (size_t s = 0; s < keys; ++s)
      w[s] = static_cast<T>(scale) *
             dot_of(x[0] + t * dim + h * part, x[1] + s * dim + h * part, part);
    softmax_in_place(w, masked ? x[3] : nullptr, keys);
  }
  template <typename T>
  void forward(const Row<T>& row) const {
    const size_t part = out / heads;
    std::fill_n(row.y, queries * out, T(0));
    for (size_t h = 0; h < heads; ++h) {
      for (size_t t = 0; t < queries; ++t) {
        weights(row.x, h, t, row.scratch);
        for (size_t s = 0; s < keys; ++s)
          add_scaled(row.scratch[s], row.x[2] + s * out + h * part, part,
                     row.y + t * out + h * part);
      }
    }
  }
  void backward(const RowGradient& row) const {
    for (size_t h = 0; h < heads; ++h)
      for (size_t t = 0; t < queries; ++t) backward_one(row, h, t);
  }
  void backward_one(const RowGradient& row, size_t h, size_t t) const {
    float *w = row.scratch, *dw = w + keys, *dz = dw + keys;
    const size_t part = dim / heads, value_part = out / heads;
    const size_t q = t * dim + h * part;
    const float* dy = row.dy + t * out + h * value_part;
    weights(row.x, h, t, w);
    for (size_t s = 0; s < keys; ++s) {
      const size_t v = s * out + h * value_part;
      dw[s] = dot_of(dy, row.x[2] + v, value_part);
      add_scaled(w[s], dy, value_part, row.dx[2] + v);
    }
    std::fill_n(dz, keys, 0.0F);
    add_softmax_gradient(w, dw, keys, dz);
    for (size_t s = 0; s < keys; ++s) {
      const size_t k = s * dim + h * part;
      add_scaled(scale * dz[s], row.x[1] + k, part, row.dx[0] + q);
      add_scaled(scale * dz[s], row.x[0] + q, part, row.dx[1] + k);
    }
  }

  size_t heads, queries, keys, dim, out;
  bool masked;
  float scale;
};

}  // namespace

OperatorDef operator_multi_head_attention() {
  return row_operator<MultiHeadAttention>(
      "multi_head_attention",
      "Attention of queries [B,T,d] over keys [B,S,d] and values [B,S,e]; a fourth input masks "
      "keys.",
      3, 4, infer, {int_attribute("heads", 1, 1, 1024, "parts that attend on their own")});
}

}  // namespace flux
