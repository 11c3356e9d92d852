// SGD: w -= lr * g. No state. The kernel for lanes of any width; see rule_kernels.h and lanes.h.
#pragma once

#include "flux/optimizer/lanes.h"
#include "flux/optimizer/rule_kernels.h"

namespace flux {
namespace {

template <typename Lanes>
struct SgdKernel {
  static void update(const RuleParams& p, float* weights, float* /*state*/, const float* gradient,
                     size_t dim) {
    Lanes::for_lanes(dim, [&](auto part, size_t i) {
      const auto w = part.load(weights + i);
      part.store(weights + i, w - part.all(p.lr) * part.load(gradient + i));
    });
  }
  static void update_rows(const RuleParams& p, float* const* rows, const float* gradients, size_t n,
                          size_t dim) {
    for (size_t r = 0; r < n; ++r) update(p, rows[r], nullptr, gradients + r * dim, dim);
  }
};

}  // namespace
}  // namespace flux
