// SGD: w -= lr * g. No state.
// The kernel for lanes of any width; see row_loop.h. Pure.
#pragma once

#include "flux/optimizer/row_loop.h"

namespace flux {
namespace {

struct SgdStep {
  template <typename Lanes>
  [[gnu::always_inline]] static inline void step(const RuleParams& p, float* weights,
                                                 float* /*state*/, const float* gradient,
                                                 size_t dim) {
    const float lr = p.lr;
    Lanes::for_lanes(dim, [=](auto part, size_t i) {
      const auto w = part.load(weights + i);
      part.store(weights + i, w - part.all(lr) * part.load(gradient + i));
    });
  }
};

}  // namespace
}  // namespace flux
