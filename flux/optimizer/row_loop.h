// RowLoop: the two entry points of a rule's kernel, made of its step on one vector.
//
// A step is a class with one function, `step<Lanes>(params, weights, state, gradient, dim)`.
// In an unnamed namespace, as lanes.h says why. Pure.
#pragma once

#include "flux/optimizer/lanes.h"
#include "flux/optimizer/rule_kernels.h"

namespace flux {
namespace {

template <typename Lanes, typename Step>
struct RowLoop {
  static void update(const RuleParams& p, float* weights, float* state, const float* gradient,
                     size_t dim) {
    Step::template step<Lanes>(p, weights, state, gradient, dim);
  }
  static void update_rows(const RuleParams& p, float* const* rows, const float* gradients, size_t n,
                          size_t dim) {
    if (dim == 1) {  // linear models: no loop within the row
      for (size_t r = 0; r < n; ++r)
        Step::template step<Lanes>(p, rows[r], rows[r] + 1, gradients + r, 1);
      return;
    }
    for (size_t r = 0; r < n; ++r)
      Step::template step<Lanes>(p, rows[r], rows[r] + dim, gradients + r * dim, dim);
  }
  static constexpr RuleKernels kernels() { return {update, update_rows}; }
};

}  // namespace
}  // namespace flux
