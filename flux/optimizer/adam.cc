#include "flux/optimizer/adam_kernel.h"
#include "flux/optimizer/rules.h"

namespace flux {
namespace {
constexpr SettingUse kUses[] = {
    {&RuleParams::beta1, 0.9F}, {&RuleParams::beta2, 0.999F}, {&RuleParams::epsilon, 1e-8F}};
}  // namespace

constinit const Rule kAdamRule = {
    .name = "adam",
    .state_size = adam_state_size,
    .init_state = init_adam_state,
    .narrow = RowLoop<Narrow, AdamStep>::kernels(),
    .wide = &kAdamWide,
    .uses = kUses,
};

}  // namespace flux
