// AdaGrad, per element: G += g * g; w -= lr * g / (sqrt(G) + epsilon). State: G[dim].
// The kernel for lanes of any width; see row_loop.h. Pure.
#pragma once

#include "flux/optimizer/row_loop.h"

namespace flux {
namespace {

struct AdagradStep {
  template <typename Lanes>
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
