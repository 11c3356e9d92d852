// reduce_sum: the sum along features or positions.
#include "flux/nn/reduction.h"

namespace flux {
namespace {

struct ReduceSum {
  template <typename T>
  static T forward(const T* x, const T* mask, size_t n) {
    return mask == nullptr ? sum_of(x, n) : dot_of(x, mask, n);
  }
  static void backward(const float*, const float* mask, size_t n, float dy, float* dx) {
    for (size_t k = 0; k < n; ++k) dx[k] = mask == nullptr ? dy : dy * mask[k];
  }
};

}  // namespace

OperatorDef operator_reduce_sum() {
  return reduction_operator<ReduceSum>(
      "reduce_sum", "Sum over features or positions; a second input masks (0: left out).");
}

}  // namespace flux
