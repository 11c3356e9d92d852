// Summary: w = decay * w + g. No state and no learning rate: w is a decayed sum of what each batch
// adds up, such as the count, sum and squares of a feature.
// The kernel for lanes of any width; see row_loop.h. Pure.
#pragma once

#include "flux/optimizer/row_loop.h"

namespace flux {
namespace {

struct SummaryStep {
  template <typename Lanes>
  [[gnu::always_inline]] static inline void step(const RuleParams& p, float* weights,
                                                 float* /*state*/, const float* gradient,
                                                 size_t dim) {
    const float decay = p.decay;
    Lanes::for_lanes(dim, [=](auto part, size_t i) {
      part.store(weights + i, part.all(decay) * part.load(weights + i) + part.load(gradient + i));
    });
  }
};

}  // namespace
}  // namespace flux
