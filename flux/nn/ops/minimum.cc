// minimum: the smaller of two inputs, element by element.
#include "flux/nn/broadcast.h"

namespace flux {
namespace {

struct Minimum : BroadcastFunction {
  using BroadcastFunction::BroadcastFunction;
  template <typename T>
  static void forward(std::span<const T* const> x, size_t n, T* y) {
    const T *a = x[0], *b = x[1];
    for (size_t c = 0; c < n; ++c) y[c] = a[c] <= b[c] ? a[c] : b[c];
  }
  static void backward(std::span<const float* const> x, const float* dy, size_t n,
                       std::span<float* const> dx) {
    const float *a = x[0], *b = x[1];
    float *da = dx[0], *db = dx[1];
    for (size_t c = 0; c < n; ++c) {
      da[c] = a[c] <= b[c] ? dy[c] : 0.0F;
      db[c] = a[c] <= b[c] ? 0.0F : dy[c];
    }
  }
};

}  // namespace

OperatorDef operator_minimum() {
  return broadcast_operator<Minimum>(
      "minimum", "The smaller of a and b, with broadcasting; of equals, a gets the gradient.", 2,
      2);
}

}  // namespace flux
