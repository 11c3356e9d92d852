// reduce_mean: the mean along features or positions; with a mask, of what it names (of nothing: 0).
#include "flux/nn/reduction.h"

namespace flux {
namespace {

struct ReduceMean {
  template <typename T>
  static T count(const T* mask, size_t n) {
    return mask == nullptr ? static_cast<T>(n) : std::max(sum_of(mask, n), T(1));
  }
  template <typename T>
  static T forward(const T* x, const T* mask, size_t n) {
    return (mask == nullptr ? sum_of(x, n) : dot_of(x, mask, n)) / count(mask, n);
  }
  static void backward(const float*, const float* mask, size_t n, float dy, float* dx) {
    const float share = dy / count(mask, n);
    for (size_t k = 0; k < n; ++k) dx[k] = mask == nullptr ? share : share * mask[k];
  }
};

}  // namespace

OperatorDef operator_reduce_mean() {
  return reduction_operator<ReduceMean>(
      "reduce_mean", "Mean over features or positions; a second input masks (0: left out).");
}

}  // namespace flux
