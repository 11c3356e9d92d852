// Rules: what the registry knows of each update rule, and the choice of its kernels.
//
// A rule is a table of plain functions and has two sets of kernels (rule_kernels.h).
// Internal to the library, except that tests build a rule with kernels of their choice.
// Threads: constants and pure functions.
#pragma once

#include <cstddef>
#include <memory>

#include "flux/optimizer/optimizer.h"
#include "flux/optimizer/rule_kernels.h"

namespace flux {

struct Rule {
  const char* name;
  size_t (*state_size)(size_t dim);
  void (*init_state)(const RuleParams& p, float* state, size_t dim);
  RuleKernels narrow;       // AVX2: every CPU that runs this binary
  const RuleKernels* wide;  // AVX-512
};

extern const Rule kSgdRule;      // sgd.cc
extern const Rule kAdagradRule;  // adagrad.cc
extern const Rule kAdamRule;     // adam.cc

enum class KernelWidth : unsigned char { kBest, kNarrow, kWide };

// As make_optimizer, with the kernels of the given width; kWide needs a CPU with AVX-512.
Result<std::unique_ptr<const Optimizer>> make_optimizer_of_width(const OptimizerOptions& options,
                                                                 KernelWidth width);
// Names the field that is out of range, the range and the value.
Status check_optimizer_options(const OptimizerOptions& options);

}  // namespace flux
