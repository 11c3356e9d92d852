// RMSProp: v = decay v + (1 - decay) g g;  w -= lr * g / (sqrt(v) + epsilon). State: v[dim].
// The kernel for lanes of any width; see row_loop.h. Pure.
#pragma once

#include "flux/optimizer/row_loop.h"

namespace flux {
namespace {

struct RmspropStep {
  template <typename Lanes>
  [[gnu::always_inline]] static inline void step(const RuleParams& p, float* weights, float* state,
                                                 const float* gradient, size_t dim) {
    const float lr = p.lr;
    const float epsilon = p.epsilon;
    const float decay = p.decay;
    Lanes::for_lanes(dim, [=](auto part, size_t i) {
      const auto g = part.load(gradient + i);
      const auto v = part.all(decay) * part.load(state + i) + part.all(1.0F - decay) * (g * g);
      part.store(state + i, v);
      const auto step = (part.all(lr) * g) / (root(v) + part.all(epsilon));
      part.store(weights + i, part.load(weights + i) - step);
    });
  }
};

}  // namespace
}  // namespace flux
