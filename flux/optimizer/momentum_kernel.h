// Momentum: v = momentum * v + g; w -= lr * v; with nesterov w -= lr * (g + momentum * v), v being
// the new one. State: v[dim].
// The kernel for lanes of any width; see row_loop.h. Pure.
#pragma once

#include "flux/optimizer/row_loop.h"

namespace flux {
namespace {

struct MomentumStep {
  template <typename Lanes>
  [[gnu::always_inline]] static inline void step(const RuleParams& p, float* weights, float* state,
                                                 const float* gradient, size_t dim) {
    const float lr = p.lr;
    const float momentum = p.momentum;
    if (p.nesterov) {
      Lanes::for_lanes(dim, [=](auto part, size_t i) {
        const auto g = part.load(gradient + i);
        const auto v = part.all(momentum) * part.load(state + i) + g;
        part.store(state + i, v);
        const auto ahead = g + part.all(momentum) * v;
        part.store(weights + i, part.load(weights + i) - part.all(lr) * ahead);
      });
      return;
    }
    Lanes::for_lanes(dim, [=](auto part, size_t i) {
      const auto v = part.all(momentum) * part.load(state + i) + part.load(gradient + i);
      part.store(state + i, v);
      part.store(weights + i, part.load(weights + i) - part.all(lr) * v);
    });
  }
};

}  // namespace
}  // namespace flux
