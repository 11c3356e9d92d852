#include "flux/cluster/lr_policy.h"

#include <algorithm>
#include <cmath>

namespace flux {

LrPolicy::LrPolicy(const LrPolicyOptions& options, uint32_t began_with) : options_(options) {
  state_.reference = std::max(1U, options.reference > 0 ? options.reference : began_with);
  state_.workers = std::max(1U, began_with);
  state_.factor = target();
}

LrPolicy::LrPolicy(const LrPolicyOptions& options, const LrPolicyState& state)
    : options_(options), state_(state) {
  state_.reference = std::max(1U, options.reference > 0 ? options.reference : state.reference);
  state_.workers = std::max(1U, state.workers);
  if (!(state.factor >= kMin && state.factor <= kMax)) state_.factor = target();
  state_.left = std::min<uint64_t>(state.left, options.warmup_batches);
  if (state_.left == 0 && state_.factor != target()) head_for_target();
}

double LrPolicy::target() const {
  const double ratio = static_cast<double>(state_.workers) / state_.reference;
  const double wanted = options_.lr == "linear" ? ratio
                        : options_.lr == "sqrt" ? std::sqrt(ratio)
                                                : 1.0;
  return std::clamp(wanted, kMin, kMax);
}

void LrPolicy::head_for_target() {
  state_.left = options_.warmup_batches;
  if (state_.left == 0) state_.factor = target();
}

void LrPolicy::workers(uint32_t count) {
  if (count == 0 || count == state_.workers) return;
  state_.workers = count;
  head_for_target();
}

void LrPolicy::leased(uint32_t batches) {
  if (batches >= state_.left) {
    state_.left = 0;
    state_.factor = target();
    return;
  }
  const double share = static_cast<double>(batches) / static_cast<double>(state_.left);
  state_.factor += (target() - state_.factor) * share;
  state_.left -= batches;
}

}  // namespace flux
