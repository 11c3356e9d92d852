// RuleKernels: the inner loops of an update rule as plain functions.
//
// Plain functions, and nothing of the standard library in this header, so that the AVX-512 kernels
// can live in a file with compiler flags of its own: no class or inline function is compiled twice
// with different flags. Pure functions; any thread.
#pragma once

#include <cstddef>

namespace flux {

// The settings of a rule with every default filled in; see settings.h.
struct RuleParams {
  float lr;
  float initial_accumulator;
  float epsilon;
  float beta;
  float beta1;
  float beta2;
  float momentum;
  bool nesterov;
  float decay;
  float weight_decay;
  float l1;
  float l2;
  float clip;
  float clip_norm;
  float weight_min;
  float weight_max;
};

struct RuleKernels {
  void (*update)(const RuleParams& p, float* weights, float* state, const float* gradient,
                 size_t dim);
  void (*update_rows)(const RuleParams& p, float* const* rows, const float* gradients, size_t n,
                      size_t dim);
};

// All in wide_kernels.cc.
extern const RuleKernels kSgdWide;
extern const RuleKernels kMomentumWide;
extern const RuleKernels kAdagradWide;
extern const RuleKernels kAdagradSharedWide;
extern const RuleKernels kAdamWide;
extern const RuleKernels kAdamSharedWide;
extern const RuleKernels kAdamwWide;
extern const RuleKernels kFtrlWide;
extern const RuleKernels kGroupFtrlWide;
extern const RuleKernels kRmspropWide;
extern const RuleKernels kSumWide;
extern const RuleKernels kSummaryWide;

}  // namespace flux
