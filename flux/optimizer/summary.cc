#include "flux/optimizer/rules.h"
#include "flux/optimizer/summary_kernel.h"

namespace flux {
namespace {
constexpr SettingUse kUses[] = {{&RuleParams::decay, 0.9999999F}};
}  // namespace

constinit const Rule kSummaryRule = {
    .name = "summary",
    .state_size = no_state,
    .init_state = init_no_state,
    .narrow = RowLoop<Narrow, SummaryStep>::kernels(),
    .wide = &kSummaryWide,
    .uses = kUses,
    .shaping = Shaping::kNone,
    .has_lr = false,
};

}  // namespace flux
