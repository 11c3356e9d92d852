#include "flux/optimizer/rmsprop_kernel.h"
#include "flux/optimizer/rules.h"

namespace flux {
namespace {
constexpr SettingUse kUses[] = {{&RuleParams::decay, 0.99F}, {&RuleParams::epsilon, 1e-8F}};
}  // namespace

constinit const Rule kRmspropRule = {
    .name = "rmsprop",
    .state_size = one_per_weight,
    .init_state = init_zero_per_weight,
    .narrow = RowLoop<Narrow, RmspropStep>::kernels(),
    .wide = &kRmspropWide,
    .uses = kUses,
};

}  // namespace flux
