// The AVX-512 instances of all rules; the only file built for such CPUs, see CMakeLists.txt.
#include "flux/optimizer/adagrad_kernel.h"
#include "flux/optimizer/adagrad_shared_kernel.h"
#include "flux/optimizer/adam_kernel.h"
#include "flux/optimizer/adam_shared_kernel.h"
#include "flux/optimizer/ftrl_kernel.h"
#include "flux/optimizer/group_ftrl_kernel.h"
#include "flux/optimizer/momentum_kernel.h"
#include "flux/optimizer/rmsprop_kernel.h"
#include "flux/optimizer/sgd_kernel.h"
#include "flux/optimizer/sum_kernel.h"
#include "flux/optimizer/summary_kernel.h"

namespace flux {

constinit const RuleKernels kSgdWide = RowLoop<Wide, SgdStep>::kernels();
constinit const RuleKernels kMomentumWide = RowLoop<Wide, MomentumStep>::kernels();
constinit const RuleKernels kAdagradWide = RowLoop<Wide, AdagradStep>::kernels();
constinit const RuleKernels kAdagradSharedWide = RowLoop<Wide, AdagradSharedStep>::kernels();
constinit const RuleKernels kAdamWide = RowLoop<Wide, AdamStep>::kernels();
constinit const RuleKernels kAdamSharedWide = RowLoop<Wide, AdamSharedStep>::kernels();
constinit const RuleKernels kAdamwWide = RowLoop<Wide, AdamwStep>::kernels();
constinit const RuleKernels kFtrlWide = RowLoop<Wide, FtrlStep>::kernels();
constinit const RuleKernels kGroupFtrlWide = RowLoop<Wide, GroupFtrlStep>::kernels();
constinit const RuleKernels kRmspropWide = RowLoop<Wide, RmspropStep>::kernels();
constinit const RuleKernels kSumWide = RowLoop<Wide, SumStep>::kernels();
constinit const RuleKernels kSummaryWide = RowLoop<Wide, SummaryStep>::kernels();

}  // namespace flux
