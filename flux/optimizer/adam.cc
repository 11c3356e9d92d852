#include "flux/optimizer/adam_kernel.h"
#include "flux/optimizer/rules.h"

namespace flux {
namespace {
size_t state_size(size_t dim) {
  return 2 * dim + 2;
}
void init_state(const RuleParams& /*p*/, float* state, size_t dim) {
  for (size_t i = 0; i < 2 * dim; ++i) state[i] = 0.0F;
  state[2 * dim] = 1.0F;
  state[2 * dim + 1] = 1.0F;
}
}  // namespace

constinit const Rule kAdamRule = {"adam",
                                  state_size,
                                  init_state,
                                  {AdamKernel<Narrow>::update, AdamKernel<Narrow>::update_rows},
                                  &kAdamWide};

}  // namespace flux
