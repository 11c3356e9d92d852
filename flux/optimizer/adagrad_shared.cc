#include "flux/optimizer/adagrad_shared_kernel.h"
#include "flux/optimizer/rules.h"

namespace flux {
namespace {
size_t state_size(size_t /*dim*/) {
  return 1;
}
void init_state(const RuleParams& /*p*/, float* state, size_t /*dim*/) {
  *state = 0.0F;
}
constexpr SettingUse kUses[] = {{&RuleParams::initial_accumulator, 3.0F}};
}  // namespace

constinit const Rule kAdagradSharedRule = {
    .name = "adagrad_shared",
    .state_size = state_size,
    .init_state = init_state,
    .narrow = RowLoop<Narrow, AdagradSharedStep>::kernels(),
    .wide = &kAdagradSharedWide,
    .uses = kUses,
    .divides_by_accumulator = true,
};

}  // namespace flux
