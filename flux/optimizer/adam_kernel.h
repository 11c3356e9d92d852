// Adam. State: m[dim], v[dim], beta1^t, beta2^t (the powers belong to the vector, so that a row
// that is seldom touched is corrected by its own age). With p1, p2 the powers after this step:
//   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g g
//   w -= lr (m / (1 - p1)) / (sqrt(v / (1 - p2)) + epsilon)
// Both corrections are folded into two scalars per vector, which leaves one root and one quotient
// per element: with c = sqrt(1 - p2), step = lr c / (1 - p1):  w -= step m / (sqrt(v) + c epsilon).
// The kernel for lanes of any width; see rule_kernels.h and lanes.h.
#pragma once

#include "flux/optimizer/lanes.h"
#include "flux/optimizer/rule_kernels.h"

namespace flux {
namespace {

// Advances the powers and gives the two scalars; in double, because 1 - p2 starts near 0.001.
struct AdamScalars {
  float step;
  float epsilon;

  AdamScalars(const RuleParams& p, float* powers) {
    powers[0] *= p.beta1;
    powers[1] *= p.beta2;
    const __m128d rest = _mm_set_sd(1.0 - static_cast<double>(powers[1]));
    const double c = _mm_cvtsd_f64(_mm_sqrt_sd(rest, rest));
    step =
        static_cast<float>(static_cast<double>(p.lr) * c / (1.0 - static_cast<double>(powers[0])));
    epsilon = static_cast<float>(static_cast<double>(p.epsilon) * c);
  }
};

template <typename Lanes>
struct AdamKernel {
  static void update(const RuleParams& p, float* weights, float* state, const float* gradient,
                     size_t dim) {
    step(p, weights, state, gradient, dim);
  }
  static void update_rows(const RuleParams& p, float* const* rows, const float* gradients, size_t n,
                          size_t dim) {
    if (dim == 1) {  // linear models: no loop within the row
      for (size_t r = 0; r < n; ++r) step(p, rows[r], rows[r] + 1, gradients + r, 1);
      return;
    }
    for (size_t r = 0; r < n; ++r) step(p, rows[r], rows[r] + dim, gradients + r * dim, dim);
  }

 private:
  [[gnu::always_inline]] static inline void step(const RuleParams& p, float* weights, float* state,
                                                 const float* gradient, size_t dim) {
    const AdamScalars s(p, state + 2 * dim);
    const float beta1 = p.beta1;
    const float beta2 = p.beta2;
    float* mean = state;
    float* square = state + dim;
    Lanes::for_lanes(dim, [=](auto part, size_t i) {
      const auto g = part.load(gradient + i);
      const auto m = part.all(beta1) * part.load(mean + i) + part.all(1.0F - beta1) * g;
      const auto v = part.all(beta2) * part.load(square + i) + part.all(1.0F - beta2) * (g * g);
      part.store(mean + i, m);
      part.store(square + i, v);
      const auto change = (part.all(s.step) * m) / (root(v) + part.all(s.epsilon));
      part.store(weights + i, part.load(weights + i) - change);
    });
  }
};

}  // namespace
}  // namespace flux
