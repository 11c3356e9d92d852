#include "flux/optimizer/adagrad_kernel.h"
#include "flux/optimizer/rules.h"

namespace flux {
namespace {
void init_state(const RuleParams& p, float* state, size_t dim) {
  for (size_t i = 0; i < dim; ++i) state[i] = p.initial_accumulator;
}
constexpr SettingUse kUses[] = {{&RuleParams::initial_accumulator, 0.0F},
                                {&RuleParams::epsilon, 1e-8F}};
}  // namespace

constinit const Rule kAdagradRule = {
    .name = "adagrad",
    .state_size = one_per_weight,
    .init_state = init_state,
    .narrow = RowLoop<Narrow, AdagradStep>::kernels(),
    .wide = &kAdagradWide,
    .uses = kUses,
};

}  // namespace flux
