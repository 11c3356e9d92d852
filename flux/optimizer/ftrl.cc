#include "flux/optimizer/ftrl_kernel.h"
#include "flux/optimizer/ftrl_rule.h"

namespace flux {

constinit const Rule kFtrlRule =
    ftrl_rule("ftrl", RowLoop<Narrow, FtrlStep>::kernels(), &kFtrlWide);

}  // namespace flux
