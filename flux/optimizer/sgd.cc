#include "flux/optimizer/rules.h"
#include "flux/optimizer/sgd_kernel.h"

namespace flux {
namespace {
size_t state_size(size_t /*dim*/) {
  return 0;
}
void init_state(const RuleParams& /*p*/, float* /*state*/, size_t /*dim*/) {}
}  // namespace

constinit const Rule kSgdRule = {"sgd",
                                 state_size,
                                 init_state,
                                 {SgdKernel<Narrow>::update, SgdKernel<Narrow>::update_rows},
                                 &kSgdWide};

}  // namespace flux
