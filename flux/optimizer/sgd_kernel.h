// SGD: w -= lr * g. No state.
// The kernel for lanes of any width; see rule_kernels.h and lanes.h. Pure.
#pragma once

#include "flux/optimizer/lanes.h"
#include "flux/optimizer/rule_kernels.h"

namespace flux {
namespace {

template <typename Lanes>
struct SgdKernel {
  static void update(const RuleParams& p, float* weights, float* /*state*/, const float* gradient,
                     size_t dim) {
    step(p, weights, nullptr, gradient, dim);
  }
  static void update_rows(const RuleParams& p, float* const* rows, const float* gradients, size_t n,
                          size_t dim) {
    if (dim == 1) {  // linear models: no loop within the row
      for (size_t r = 0; r < n; ++r) step(p, rows[r], nullptr, gradients + r, 1);
      return;
    }
    for (size_t r = 0; r < n; ++r) step(p, rows[r], nullptr, gradients + r * dim, dim);
  }

 private:
  [[gnu::always_inline]] static inline void step(const RuleParams& p, float* weights,
                                                 float* /*state*/, const float* gradient,
                                                 size_t dim) {
    Lanes::for_lanes(dim, [&](auto part, size_t i) {
      const auto w = part.load(weights + i);
      part.store(weights + i, w - part.all(p.lr) * part.load(gradient + i));
    });
  }
};

}  // namespace
}  // namespace flux
