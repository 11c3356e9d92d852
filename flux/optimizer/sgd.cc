#include "flux/optimizer/rules.h"
#include "flux/optimizer/sgd_kernel.h"

namespace flux {
constinit const Rule kSgdRule = {
    .name = "sgd",
    .state_size = no_state,
    .init_state = init_no_state,
    .narrow = RowLoop<Narrow, SgdStep>::kernels(),
    .wide = &kSgdWide,
};

}  // namespace flux
