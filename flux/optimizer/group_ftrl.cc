#include "flux/optimizer/group_ftrl_kernel.h"
#include "flux/optimizer/rules.h"

namespace flux {
namespace {
constexpr SettingUse kUses[] = {{&RuleParams::initial_accumulator, 0.0F},
                                {&RuleParams::beta, 1.0F},
                                {&RuleParams::l1, 0.0F},
                                {&RuleParams::l2, 0.0F}};
}  // namespace

constinit const Rule kGroupFtrlRule = {
    .name = "group_ftrl",
    .state_size = ftrl_state_size,
    .init_state = init_ftrl_state,
    .narrow = RowLoop<Narrow, GroupFtrlStep>::kernels(),
    .wide = &kGroupFtrlWide,
    .uses = kUses,
    .shaping = Shaping::kClipping,
};

}  // namespace flux
