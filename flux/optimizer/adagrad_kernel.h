// AdaGrad, per element: G += g * g; w -= lr * g / (sqrt(G) + epsilon). State: G[dim].
// The kernel for lanes of any width; see rule_kernels.h and lanes.h.
#pragma once

#include "flux/optimizer/lanes.h"
#include "flux/optimizer/rule_kernels.h"

namespace flux {
namespace {

template <typename Lanes>
struct AdagradKernel {
  static void update(const RuleParams& p, float* weights, float* state, const float* gradient,
                     size_t dim) {
    step(p, weights, state, gradient, dim);
  }
  static void update_rows(const RuleParams& p, float* const* rows, const float* gradients, size_t n,
                          size_t dim) {
    if (dim == 1) {  // linear models: no loop within the row
      for (size_t r = 0; r < n; ++r) step(p, rows[r], rows[r] + 1, gradients + r, 1);
      return;
    }
    for (size_t r = 0; r < n; ++r) step(p, rows[r], rows[r] + dim, gradients + r * dim, dim);
  }

 private:
  [[gnu::always_inline]] static inline void step(const RuleParams& p, float* weights, float* state,
                                                 const float* gradient, size_t dim) {
    const float lr = p.lr;
    const float epsilon = p.epsilon;
    Lanes::for_lanes(dim, [=](auto part, size_t i) {
      const auto g = part.load(gradient + i);
      const auto sum = part.load(state + i) + g * g;
      part.store(state + i, sum);
      const auto step = (part.all(lr) * g) / (root(sum) + part.all(epsilon));
      part.store(weights + i, part.load(weights + i) - step);
    });
  }
};

}  // namespace
}  // namespace flux
