#include "flux/optimizer/rules.h"
#include "flux/optimizer/sum_kernel.h"

namespace flux {
constinit const Rule kSumRule = {
    .name = "sum",
    .state_size = no_state,
    .init_state = init_no_state,
    .narrow = RowLoop<Narrow, SumStep>::kernels(),
    .wide = &kSumWide,
    .shaping = Shaping::kBounds,
    .has_lr = false,
};

}  // namespace flux
