#include "flux/optimizer/ftrl_rule.h"
#include "flux/optimizer/group_ftrl_kernel.h"

namespace flux {

constinit const Rule kGroupFtrlRule =
    ftrl_rule("group_ftrl", RowLoop<Narrow, GroupFtrlStep>::kernels(), &kGroupFtrlWide);

}  // namespace flux
