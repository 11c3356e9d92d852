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
  // The weights and two gradients of them, then keys and values of one head with their features
  // first ([part][keys], so that loops run over keys), and the gradients of those.
  size_t scratch() const { return 3 * keys + 2 * keys * (part() + value_part()); }
  size_t part() const { return dim / heads; }
  size_t value_part() const { return out / heads; }

  // Head h of x [keys][width] with its features first.
  template <typename T>
  void turn_head(const T* x, size_t width, size_t h, T* to) const {
    const size_t n = width / heads;
    for (size_t s = 0; s < keys; ++s)
      for (size_t c = 0; c < n; ++c) to[c * keys + s] = x[s * width + h * n + c];
  }
  void add_turned(const float* from, size_t width, size_t h, float* to) const {
    const size_t n = width / heads;
    for (size_t s = 0; s < keys; ++s)
      for (size_t c = 0; c < n; ++c) to[s * width + h * n + c] += from[c * keys + s];
  }
  // The weights of one head for the query q, by the head's turned keys.
  template <typename T>
  void weights(const T* q, const T* turned, const T* mask, T* w) const {
    row_times_matrix(q, part(), turned, keys, keys, w);
    for (size_t s = 0; s < keys; ++s) w[s] *= static_cast<T>(scale);
    softmax_in_place(w, mask, keys);
  }
  template <typename T>
  void forward(const Row<T>& row) const {
    T *w = row.scratch, *turned = w + 3 * keys;
    for (size_t h = 0; h < heads; ++h) {
      turn_head(row.x[1], dim, h, turned);
      for (size_t t = 0; t < queries; ++t) {
        weights(row.x[0] + t * dim + h * part(), turned, masked ? row.x[3] : nullptr, w);
        row_times_matrix(w, keys, row.x[2] + h * value_part(), out, value_part(),
                         row.y + t * out + h * value_part());
      }
    }
  }
  void backward(const RowGradient& row) const {
    float *k = row.scratch + 3 * keys, *v = k + keys * part();
    float *dk = v + keys * value_part(), *dv = dk + keys * part();
    for (size_t h = 0; h < heads; ++h) {
      turn_head(row.x[1], dim, h, k);
      turn_head(row.x[2], out, h, v);
      std::fill_n(dk, keys * (part() + value_part()), 0.0F);
      for (size_t t = 0; t < queries; ++t) backward_query(row, h, t, {k, v, dk, dv});
      add_turned(dk, dim, h, row.dx[1]);
      add_turned(dv, out, h, row.dx[2]);
    }
  }
  // Turned keys and values of one head, and their gradients.
  struct Head {
    const float *k, *v;
    float *dk, *dv;
  };
  void backward_query(const RowGradient& row, size_t h, size_t t, const Head& head) const {
    float *w = row.scratch, *dw = w + keys, *dz = dw + keys;
    const size_t at = t * dim + h * part();
    const float *q = row.x[0] + at, *dy = row.dy + t * out + h * value_part();
    weights(q, head.k, masked ? row.x[3] : nullptr, w);
    row_times_matrix(dy, value_part(), head.v, keys, keys, dw);
    for (size_t c = 0; c < value_part(); ++c) add_scaled(dy[c], w, keys, head.dv + c * keys);
    std::fill_n(dz, keys, 0.0F);
    add_softmax_gradient(w, dw, keys, dz);
    for (size_t s = 0; s < keys; ++s) dz[s] *= scale;
    for (size_t s = 0; s < keys; ++s)
      add_scaled(dz[s], row.x[1] + s * dim + h * part(), part(), row.dx[0] + at);
    for (size_t c = 0; c < part(); ++c) add_scaled(q[c], dz, keys, head.dk + c * keys);
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
