// FTRL whose L1 term is a group lasso over the row: a row is zero as a whole, or all of it is
// there. State and the change of z and n: as in ftrl_kernel.h. Then, with |z| the norm of the row's
// z:
//   limit = l1 * sqrt(dim)
//   w = 0 if |z| <= limit, else w_i = -z_i (1 - limit / |z|) / ((beta + sqrt(n_i)) / lr + l2)
// A row of one weight is what ftrl makes of it.
// The kernel for lanes of any width; see row_loop.h. Pure.
#pragma once

#include "flux/optimizer/ftrl_kernel.h"
#include "flux/optimizer/row_sums.h"

namespace flux {
namespace {

struct GroupFtrlStep {
  template <typename Lanes>
  [[gnu::always_inline]] static inline void step(const RuleParams& p, float* weights, float* state,
                                                 const float* gradient, size_t dim) {
    // The quotient's lower side waits in the weights until the norm is known.
    Lanes::for_lanes(dim, [=](auto part, size_t i) {
      const auto [z, below] =
          advance_ftrl(p, part, weights + i, state + i, state + dim + i, gradient + i);
      part.store(weights + i, below);
    });
    const double norm = root_of(sum_of_squares(state, dim));
    const double limit = static_cast<double>(p.l1) * root_of(static_cast<double>(dim));
    const float kept = norm <= limit ? 0.0F : static_cast<float>(1.0 - limit / norm);
    Lanes::for_lanes(dim, [=](auto part, size_t i) {
      const auto z = part.load(state + i) * part.all(kept);
      part.store(weights + i, (part.all(0.0F) - z) / part.load(weights + i));
    });
  }
};

}  // namespace
}  // namespace flux
