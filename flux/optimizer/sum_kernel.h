// Sum: w += g. No state and no learning rate: the "gradient" is a change made elsewhere.
// The kernel for lanes of any width; see row_loop.h. Pure.
#pragma once

#include "flux/optimizer/row_loop.h"

namespace flux {
namespace {

struct SumStep {
  template <typename Lanes>
  [[gnu::always_inline]] static inline void step(const RuleParams& /*p*/, float* weights,
                                                 float* /*state*/, const float* gradient,
                                                 size_t dim) {
    Lanes::for_lanes(dim, [=](auto part, size_t i) {
      part.store(weights + i, part.load(weights + i) + part.load(gradient + i));
    });
  }
};

}  // namespace
}  // namespace flux
