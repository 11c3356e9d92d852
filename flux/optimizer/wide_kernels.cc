// The AVX-512 instances of all rules; the only file built for such CPUs, see CMakeLists.txt.
#include "flux/optimizer/adagrad_kernel.h"
#include "flux/optimizer/adam_kernel.h"
#include "flux/optimizer/sgd_kernel.h"

namespace flux {

constinit const RuleKernels kSgdWide = {SgdKernel<Wide>::update, SgdKernel<Wide>::update_rows};
constinit const RuleKernels kAdagradWide = {AdagradKernel<Wide>::update,
                                            AdagradKernel<Wide>::update_rows};
constinit const RuleKernels kAdamWide = {AdamKernel<Wide>::update, AdamKernel<Wide>::update_rows};

}  // namespace flux
