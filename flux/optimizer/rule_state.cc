// The sizes and first values of state that several rules share.
#include <algorithm>

#include "flux/optimizer/rules.h"

namespace flux {

size_t no_state(size_t /*dim*/) {
  return 0;
}
void init_no_state(const RuleParams& /*p*/, float* /*state*/, size_t /*dim*/) {}

size_t one_per_weight(size_t dim) {
  return dim;
}
void init_zero_per_weight(const RuleParams& /*p*/, float* state, size_t dim) {
  std::fill_n(state, dim, 0.0F);
}

size_t adam_state_size(size_t dim) {
  return 2 * dim + 2;
}
void init_adam_state(const RuleParams& /*p*/, float* state, size_t dim) {
  std::fill_n(state, 2 * dim, 0.0F);
  std::fill_n(state + 2 * dim, 2, 1.0F);
}

size_t ftrl_state_size(size_t dim) {
  return 2 * dim;
}
void init_ftrl_state(const RuleParams& p, float* state, size_t dim) {
  std::fill_n(state, dim, 0.0F);
  std::fill_n(state + dim, dim, p.initial_accumulator);
}

}  // namespace flux
