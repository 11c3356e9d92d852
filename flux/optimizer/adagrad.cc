#include "flux/optimizer/adagrad_kernel.h"
#include "flux/optimizer/rules.h"

namespace flux {
namespace {
size_t state_size(size_t dim) {
  return dim;
}
void init_state(const RuleParams& p, float* state, size_t dim) {
  for (size_t i = 0; i < dim; ++i) state[i] = p.initial_accumulator;
}
}  // namespace

constinit const Rule kAdagradRule = {
    "adagrad",
    state_size,
    init_state,
    {AdagradKernel<Narrow>::update, AdagradKernel<Narrow>::update_rows},
    &kAdagradWide};

}  // namespace flux
