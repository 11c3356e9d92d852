// The update rules as plain loops over single floats; internal to reference.cc. Each says its own
// size and first values of state, apart from those of the fast rules. Pure functions.
#pragma once

#include <cstddef>
#include <string_view>

#include "flux/optimizer/rules.h"

namespace flux {

struct ReferenceRule {
  const char* name;
  size_t (*state_size)(size_t dim);
  void (*init_state)(const RuleParams& p, float* state, size_t dim);
  void (*step)(const RuleParams& p, float* weights, float* state, const float* gradient,
               size_t dim);
};

// Aborts if there is none.
const ReferenceRule& reference_rule(std::string_view name);

// In the order that flux/optimizer/row_sums.h fixes.
double reference_sum(const float* x, size_t n);
double reference_sum_of_squares(const float* x, size_t n);

}  // namespace flux
