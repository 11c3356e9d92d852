// add: the sum of inputs, with broadcasting.
#include "flux/nn/broadcast.h"

namespace flux {
namespace {

struct Add : BroadcastFunction {
  using BroadcastFunction::BroadcastFunction;
  template <typename T>
  static void forward(std::span<const T* const> x, size_t n, T* y) {
    std::copy_n(x[0], n, y);
    for (const T* more : x.subspan(1))
      for (size_t c = 0; c < n; ++c) y[c] += more[c];
  }
  static void backward(std::span<const float* const>, const float* dy, size_t n,
                       std::span<float* const> dx) {
    for (float* d : dx) std::copy_n(dy, n, d);
  }
};

}  // namespace

OperatorDef operator_add() {
  return broadcast_operator<Add>("add", "Sum of 2 to 64 inputs, with broadcasting.", 2, 64);
}

}  // namespace flux
