// reduce_max: the largest along features or positions; with a mask, of what it names (of nothing:
// 0). The gradient goes to the first of the largest.
#include <cmath>

#include "flux/nn/reduction.h"

namespace flux {
namespace {

struct ReduceMax {
  // Position of the largest, or n when nothing counts.
  template <typename T>
  static size_t largest(const T* x, const T* mask, size_t n) {
    size_t best = n;
    T top = static_cast<T>(-HUGE_VAL);
    for (size_t k = 0; k < n; ++k) {
      const bool better = (mask == nullptr || mask[k] != 0) & (best == n || x[k] > top);
      best = better ? k : best;
      top = better ? x[k] : top;
    }
    return best;
  }
  template <typename T>
  static T forward(const T* x, const T* mask, size_t n) {
    const size_t best = largest(x, mask, n);
    return best == n ? T(0) : x[best];
  }
  static void backward(const float* x, const float* mask, size_t n, float dy, float* dx) {
    const size_t best = largest(x, mask, n);
    for (size_t k = 0; k < n; ++k) dx[k] = k == best ? dy : 0.0F;
  }
};

}  // namespace

OperatorDef operator_reduce_max() {
  return reduction_operator<ReduceMax>(
      "reduce_max", "Largest over features or positions; a second input masks (0: left out).");
}

}  // namespace flux
