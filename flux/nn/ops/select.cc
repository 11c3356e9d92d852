// select: a where the condition is not 0, else b; the condition gets no gradient.
#include "flux/nn/broadcast.h"

namespace flux {
namespace {

struct Select : BroadcastFunction {
  using BroadcastFunction::BroadcastFunction;
  template <typename T>
  static void forward(std::span<const T* const> x, size_t n, T* y) {
    const T *condition = x[0], *a = x[1], *b = x[2];
    for (size_t c = 0; c < n; ++c) y[c] = condition[c] != 0 ? a[c] : b[c];
  }
  static void backward(std::span<const float* const> x, const float* dy, size_t n,
                       std::span<float* const> dx) {
    for (size_t c = 0; c < n; ++c) {
      dx[0][c] = 0;
      dx[1][c] = x[0][c] != 0 ? dy[c] : 0.0F;
      dx[2][c] = x[0][c] != 0 ? 0.0F : dy[c];
    }
  }
};

}  // namespace

OperatorDef operator_select() {
  return broadcast_operator<Select>(
      "select", "Of (condition, a, b): a where the condition is not 0, else b; with broadcasting.",
      3, 3);
}

}  // namespace flux
