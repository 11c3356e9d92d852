// sub: the difference of two inputs.
#include "flux/nn/broadcast.h"

namespace flux {
namespace {

struct Sub : BroadcastFunction {
  using BroadcastFunction::BroadcastFunction;
  template <typename T>
  static void forward(std::span<const T* const> x, size_t n, T* y) {
    const T *a = x[0], *b = x[1];
    for (size_t c = 0; c < n; ++c) y[c] = a[c] - b[c];
  }
  static void backward(std::span<const float* const>, const float* dy, size_t n,
                       std::span<float* const> dx) {
    float *da = dx[0], *db = dx[1];
    for (size_t c = 0; c < n; ++c) {
      da[c] = dy[c];
      db[c] = -dy[c];
    }
  }
};

}  // namespace

OperatorDef operator_sub() {
  return broadcast_operator<Sub>("sub", "a - b, element by element, with broadcasting.", 2, 2);
}

}  // namespace flux
