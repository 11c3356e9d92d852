// AdaGrad with one accumulator for the whole vector, as CTR systems use it for sparse rows:
//   w -= lr * g * sqrt(g0 / (g0 + G)), with the G from before the step; then G += mean of g * g.
// g0 is the setting initial_accumulator. State: G.
// The kernel for lanes of any width; see row_loop.h. Pure.
#pragma once

#include "flux/optimizer/row_loop.h"
#include "flux/optimizer/row_sums.h"

namespace flux {
namespace {

struct AdagradSharedStep {
  template <typename Lanes>
  [[gnu::always_inline]] static inline void step(const RuleParams& p, float* weights, float* state,
                                                 const float* gradient, size_t dim) {
    const double start = p.initial_accumulator;
    const double slower = root_of(start / (start + static_cast<double>(*state)));
    const auto rate = static_cast<float>(static_cast<double>(p.lr) * slower);
    *state += static_cast<float>(sum_of_squares(gradient, dim) / static_cast<double>(dim));
    Lanes::for_lanes(dim, [=](auto part, size_t i) {
      const auto w = part.load(weights + i);
      part.store(weights + i, w - part.all(rate) * part.load(gradient + i));
    });
  }
};

}  // namespace
}  // namespace flux
