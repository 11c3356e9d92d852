// similarity_operator<F>: a number for each pair of positions of two values with the same dim;
// a value with one position meets every position of the other ([B,d] and [B,T,d] give [B,T,1]).
//
// F has two static functions over two vectors:
//   template <typename T> T forward(const T* a, const T* b, size_t dim);
//   void backward(const float* a, const float* b, size_t dim, float dy, float* da, float* db);
// The second adds to da and db.
#pragma once

#include "flux/nn/row_operator.h"

namespace flux {

template <typename F>
class Similarity : public RowFunction {
 public:
  Similarity(const Graph& graph, const Node& node)
      : length_(node.length),
        dim_(input_of(graph, node, 0).dim()),
        step_a_(input_of(graph, node, 0).length == 1 ? 0 : dim_),
        step_b_(input_of(graph, node, 1).length == 1 ? 0 : dim_) {}
  template <typename T>
  void forward(const Row<T>& row) const {
    for (size_t t = 0; t < length_; ++t)
      row.y[t] = F::template forward<T>(row.x[0] + t * step_a_, row.x[1] + t * step_b_, dim_);
  }
  void backward(const RowGradient& row) const {
    for (size_t t = 0; t < length_; ++t)
      F::backward(row.x[0] + t * step_a_, row.x[1] + t * step_b_, dim_, row.dy[t],
                  row.dx[0] + t * step_a_, row.dx[1] + t * step_b_);
  }

 private:
  size_t length_, dim_, step_a_, step_b_;
};

inline Status infer_similarity(InferContext& context) {
  const Node &a = *context.inputs[0], &b = *context.inputs[1];
  const bool lengths = a.length == b.length || a.length == 1 || b.length == 1;
  if (!lengths || a.dim() != b.dim())
    return context.fail(
        fmt::format("inputs must be two vectors [B,d], or sequences [B,T,d] of them, got {}",
                    context.shapes()));
  context.node.length = std::max(a.length, b.length);
  context.node.width = context.node.length;
  return Status::ok();
}

template <typename F>
OperatorDef similarity_operator(const char* name, const char* doc) {
  return row_operator<Similarity<F>>(name, doc, 2, 2, infer_similarity);
}

}  // namespace flux
