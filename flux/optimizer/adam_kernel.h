// Adam. State: m[dim], v[dim], beta1^t, beta2^t (the powers belong to the vector, so that a row
// that is seldom touched is corrected by its own age). With p1, p2 the powers after this step:
//   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g g
//   w -= lr (m / (1 - p1)) / (sqrt(v / (1 - p2)) + epsilon)
// Both corrections are folded into two scalars per vector, which leaves one root and one quotient
// per element: with c = sqrt(1 - p2), step = lr c / (1 - p1):  w -= step m / (sqrt(v) + c epsilon).
// AdamW is the same after w -= lr * weight_decay * w.
// The kernel for lanes of any width; see row_loop.h. Pure.
#pragma once

#include "flux/optimizer/row_loop.h"
#include "flux/optimizer/row_sums.h"

namespace flux {
namespace {

// Advances the powers and gives the two scalars; in double, because 1 - p2 starts near 0.001.
struct AdamScalars {
  float step;
  float epsilon;

  AdamScalars(const RuleParams& p, float* powers) {
    powers[0] *= p.beta1;
    powers[1] *= p.beta2;
    const double c = root_of(1.0 - static_cast<double>(powers[1]));
    step =
        static_cast<float>(static_cast<double>(p.lr) * c / (1.0 - static_cast<double>(powers[0])));
    epsilon = static_cast<float>(static_cast<double>(p.epsilon) * c);
  }
};

template <bool kDecoupledDecay>
struct AdamStepOf {
  template <typename Lanes>
  [[gnu::always_inline]] static inline void step(const RuleParams& p, float* weights, float* state,
                                                 const float* gradient, size_t dim) {
    const AdamScalars s(p, state + 2 * dim);
    const float beta1 = p.beta1;
    const float beta2 = p.beta2;
    const float kept = 1.0F - p.lr * p.weight_decay;
    float* mean = state;
    float* square = state + dim;
    Lanes::for_lanes(dim, [=](auto part, size_t i) {
      const auto g = part.load(gradient + i);
      const auto m = part.all(beta1) * part.load(mean + i) + part.all(1.0F - beta1) * g;
      const auto v = part.all(beta2) * part.load(square + i) + part.all(1.0F - beta2) * (g * g);
      part.store(mean + i, m);
      part.store(square + i, v);
      const auto change = (part.all(s.step) * m) / (root(v) + part.all(s.epsilon));
      auto w = part.load(weights + i);
      if constexpr (kDecoupledDecay) w = w * part.all(kept);
      part.store(weights + i, w - change);
    });
  }
};
using AdamStep = AdamStepOf<false>;
using AdamwStep = AdamStepOf<true>;

}  // namespace
}  // namespace flux
