#include "flux/optimizer/adam_shared_kernel.h"
#include "flux/optimizer/rules.h"

namespace flux {
namespace {
size_t state_size(size_t /*dim*/) {
  return 4;
}
void init_state(const RuleParams& /*p*/, float* state, size_t /*dim*/) {
  state[0] = state[1] = 0.0F;
  state[2] = state[3] = 1.0F;
}
constexpr SettingUse kUses[] = {
    {&RuleParams::beta1, 0.9F}, {&RuleParams::beta2, 0.999F}, {&RuleParams::epsilon, 1e-8F}};
}  // namespace

constinit const Rule kAdamSharedRule = {
    .name = "adam_shared",
    .state_size = state_size,
    .init_state = init_state,
    .narrow = RowLoop<Narrow, AdamSharedStep>::kernels(),
    .wide = &kAdamSharedWide,
    .uses = kUses,
};

}  // namespace flux
