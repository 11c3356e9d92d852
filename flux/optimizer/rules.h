// Rules: what the registry knows of each update rule, and the choice of its kernels.
//
// A rule is a table of plain functions and has two sets of kernels (rule_kernels.h).
// Internal to the library, except that tests build a rule with kernels of their choice.
// Threads: constants and pure functions.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <string_view>

#include "flux/optimizer/optimizer.h"
#include "flux/optimizer/rule_kernels.h"

namespace flux {

// A setting that a rule uses, and what it is if nobody says.
struct SettingUse {
  float RuleParams::*setting;
  float standard;
};

// What a rule gets from around it, beside its own settings.
enum class Shaping : unsigned char {
  kNone,
  kBounds,    // weight_min, weight_max
  kClipping,  // those, clip and clip_norm
  kAll,       // those, and l1 and l2 as terms of the gradient
};

struct Rule {
  const char* name;
  size_t (*state_size)(size_t dim);
  void (*init_state)(const RuleParams& p, float* state, size_t dim);
  RuleKernels narrow;       // AVX2: every CPU that runs this binary
  const RuleKernels* wide;  // AVX-512
  std::span<const SettingUse> uses{};
  Shaping shaping = Shaping::kAll;
  bool has_lr = true;
  bool has_nesterov = false;
  bool divides_by_accumulator = false;  // initial_accumulator must be above 0
};

// Each in the file of its name.
extern const Rule kSgdRule;
extern const Rule kMomentumRule;
extern const Rule kAdagradRule;
extern const Rule kAdagradSharedRule;
extern const Rule kAdamRule;
extern const Rule kAdamSharedRule;
extern const Rule kAdamwRule;
extern const Rule kFtrlRule;
extern const Rule kGroupFtrlRule;
extern const Rule kRmspropRule;
extern const Rule kSumRule;
extern const Rule kSummaryRule;

std::span<const Rule* const> all_rules();
const Rule* find_rule(std::string_view name);  // or null
// What `rule` takes `setting` for when it is not given, or null if it does not use it.
const float* standard_of(const Rule& rule, float RuleParams::*setting);
// The settings of a rule with every default filled in; `options` must be valid.
RuleParams resolve_params(const OptimizerOptions& options);

// Common sizes and first values of state.
size_t no_state(size_t dim);
void init_no_state(const RuleParams& p, float* state, size_t dim);
size_t one_per_weight(size_t dim);
void init_zero_per_weight(const RuleParams& p, float* state, size_t dim);
// m, v and the two powers of adam and adamw.
size_t adam_state_size(size_t dim);
void init_adam_state(const RuleParams& p, float* state, size_t dim);
// z and n of ftrl and group_ftrl.
size_t ftrl_state_size(size_t dim);
void init_ftrl_state(const RuleParams& p, float* state, size_t dim);

enum class KernelWidth : unsigned char { kBest, kNarrow, kWide };

// As make_optimizer, with the kernels of the given width; kWide needs a CPU with AVX-512.
Result<std::unique_ptr<const Optimizer>> make_optimizer_of_width(const OptimizerOptions& options,
                                                                 KernelWidth width);

}  // namespace flux
