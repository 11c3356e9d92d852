// RuleKernels: the inner loops of an update rule as plain functions.
//
// Plain functions, and nothing of the standard library in this header, so that the AVX-512 kernels
// can live in a file with compiler flags of its own: no class or inline function is compiled twice
// with different flags. Pure functions; any thread.
#pragma once

#include <cstddef>

namespace flux {

struct RuleParams {
  float lr;
  float initial_accumulator;
  float epsilon;
  float beta1;
  float beta2;
};

struct RuleKernels {
  void (*update)(const RuleParams& p, float* weights, float* state, const float* gradient,
                 size_t dim);
  void (*update_rows)(const RuleParams& p, float* const* rows, const float* gradients, size_t n,
                      size_t dim);
};

extern const RuleKernels kSgdWide;      // wide_kernels.cc
extern const RuleKernels kAdagradWide;  // wide_kernels.cc
extern const RuleKernels kAdamWide;     // wide_kernels.cc

}  // namespace flux
