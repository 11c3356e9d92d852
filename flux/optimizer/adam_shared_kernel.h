// Adam with one m and one v for the whole vector. State: m, v, beta1^t, beta2^t. An element steps
// by what the shared moments become with its own gradient; the vector keeps their means:
//   m_i = beta1 m + (1 - beta1) g_i;  v_i = beta2 v + (1 - beta2) g_i g_i
//   w_i -= lr (m_i / (1 - p1)) / (sqrt(v_i / (1 - p2)) + epsilon);  m = mean m_i, v = mean v_i
// The corrections are folded as in adam_kernel.h.
// The kernel for lanes of any width; see row_loop.h. Pure.
#pragma once

#include "flux/optimizer/adam_kernel.h"

namespace flux {
namespace {

struct AdamSharedStep {
  template <typename Lanes>
  [[gnu::always_inline]] static inline void step(const RuleParams& p, float* weights, float* state,
                                                 const float* gradient, size_t dim) {
    const AdamScalars s(p, state + 2);
    const auto n = static_cast<double>(dim);
    const float mean = p.beta1 * state[0];
    const float square = p.beta2 * state[1];
    const float rest1 = 1.0F - p.beta1;
    const float rest2 = 1.0F - p.beta2;
    state[0] = mean + rest1 * static_cast<float>(sum_of(gradient, dim) / n);
    state[1] = square + rest2 * static_cast<float>(sum_of_squares(gradient, dim) / n);
    Lanes::for_lanes(dim, [=](auto part, size_t i) {
      const auto g = part.load(gradient + i);
      const auto m = part.all(mean) + part.all(rest1) * g;
      const auto v = part.all(square) + part.all(rest2) * (g * g);
      const auto change = (part.all(s.step) * m) / (root(v) + part.all(s.epsilon));
      part.store(weights + i, part.load(weights + i) - change);
    });
  }
};

}  // namespace
}  // namespace flux
