// FTRL-proximal, per element. State: z[dim], n[dim]; n starts at initial_accumulator. lr is alpha.
//   sigma = (sqrt(n + g g) - sqrt(n)) / lr;  z += g - sigma w;  n += g g
//   w = 0 if |z| <= l1, else -(z - sign(z) l1) / ((beta + sqrt(n)) / lr + l2)
// The first value of a weight counts only through its first sigma: there is no memory of it in z.
// The kernel for lanes of any width; see row_loop.h. Pure.
#pragma once

#include "flux/optimizer/row_loop.h"

namespace flux {
namespace {

// Advances z and n of one part; gives the new z and the quotient's lower side.
template <typename Value>
struct FtrlPart {
  Value z;
  Value below;
};

template <typename Part>
[[gnu::always_inline]] inline auto advance_ftrl(const RuleParams& p, Part part,
                                                const float* weights, float* z, float* n,
                                                const float* gradient) {
  const auto g = part.load(gradient);
  const auto before = part.load(n);
  const auto after = before + g * g;
  const auto root_after = root(after);
  const auto sigma = (root_after - root(before)) / part.all(p.lr);
  const auto sum = part.load(z) + (g - sigma * part.load(weights));
  part.store(n, after);
  part.store(z, sum);
  return FtrlPart<decltype(part.load(n))>{
      sum, (part.all(p.beta) + root_after) / part.all(p.lr) + part.all(p.l2)};
}

struct FtrlStep {
  template <typename Lanes>
  [[gnu::always_inline]] static inline void step(const RuleParams& p, float* weights, float* state,
                                                 const float* gradient, size_t dim) {
    Lanes::for_lanes(dim, [=](auto part, size_t i) {
      const auto [z, below] =
          advance_ftrl(p, part, weights + i, state + i, state + dim + i, gradient + i);
      const auto inside = smaller(part.all(p.l1), larger(part.all(-p.l1), z));
      part.store(weights + i, (inside - z) / below);
    });
  }
};

}  // namespace
}  // namespace flux
