// comparison_operator<F>: a comparison of two inputs (with broadcasting), or of one input with the
// attribute `value`: 1 where F::holds(a, b), else 0. Its inputs get zero gradients.
#pragma once

#include "flux/nn/broadcast.h"

namespace flux {

template <typename F>
struct Comparison : BroadcastFunction {
  explicit Comparison(const Node& node)
      : BroadcastFunction(node), value(static_cast<float>(node.float_attr("value"))) {}
  template <typename T>
  void forward(std::span<const T* const> x, size_t n, T* y) const {
    for (size_t c = 0; c < n; ++c)
      y[c] = F::holds(x[0][c], x.size() > 1 ? x[1][c] : static_cast<T>(value)) ? T(1) : T(0);
  }
  static void backward(std::span<const float* const>, const float*, size_t n,
                       std::span<float* const> dx) {
    for (float* d : dx) std::fill_n(d, n, 0.0F);
  }

  float value;
};

template <typename F>
OperatorDef comparison_operator(const char* name, const char* doc) {
  OperatorDef def = broadcast_operator<Comparison<F>>(
      name, doc, 1, 2,
      {float_attribute("value", 0, -1e30, 1e30, "what a single input is compared with")});
  def.passes_gradient = false;
  return def;
}

}  // namespace flux
