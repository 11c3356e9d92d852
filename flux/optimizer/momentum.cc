#include "flux/optimizer/momentum_kernel.h"
#include "flux/optimizer/rules.h"

namespace flux {
namespace {
constexpr SettingUse kUses[] = {{&RuleParams::momentum, 0.9F}};
}  // namespace

constinit const Rule kMomentumRule = {
    .name = "momentum",
    .state_size = one_per_weight,
    .init_state = init_zero_per_weight,
    .narrow = RowLoop<Narrow, MomentumStep>::kernels(),
    .wide = &kMomentumWide,
    .uses = kUses,
    .has_nesterov = true,
};

}  // namespace flux
