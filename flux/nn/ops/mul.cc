// mul: the product of inputs, element by element, with broadcasting.
#include "flux/nn/broadcast.h"

namespace flux {
namespace {

struct Mul : BroadcastFunction {
  using BroadcastFunction::BroadcastFunction;
  template <typename T>
  static void forward(std::span<const T* const> x, size_t n, T* y) {
    std::copy_n(x[0], n, y);
    for (const T* more : x.subspan(1))
      for (size_t c = 0; c < n; ++c) y[c] *= more[c];
  }
  // What an input gets is dy times all the others: once those before it, once those behind it.
  static void backward(std::span<const float* const> x, const float* dy, size_t n,
                       std::span<float* const> dx) {
    std::copy_n(dy, n, dx[0]);
    for (size_t i = 1; i < x.size(); ++i)
      for (size_t c = 0; c < n; ++c) dx[i][c] = dx[i - 1][c] * x[i - 1][c];
    for (size_t i = x.size(); i-- > 1;)
      for (size_t k = 0; k < i; ++k)
        for (size_t c = 0; c < n; ++c) dx[k][c] *= x[i][c];
  }
};

}  // namespace

OperatorDef operator_mul() {
  return broadcast_operator<Mul>(
      "mul", "Product of 2 to 64 inputs, element by element, with broadcasting.", 2, 64);
}

}  // namespace flux
