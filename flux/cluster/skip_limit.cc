#include "flux/cluster/skip_limit.h"

#include <algorithm>
#include <cmath>

namespace flux {

uint64_t skips_allowed(uint64_t batches, double limit) {
  if (!(limit > 0)) return 0;
  const double share = std::min(limit, 1.0) * static_cast<double>(batches);
  // A share that is whole but for rounding is that whole number.
  return std::max<uint64_t>(1, static_cast<uint64_t>(std::floor(share * (1 + 1e-12))));
}

Status check_skips(uint64_t skipped, uint64_t batches, double limit, const std::string& last) {
  const uint64_t allowed = skips_allowed(batches, limit);
  if (skipped <= allowed) return Status::ok();
  return invalid(
      "{} of the {} batches of this pass had to be skipped, {} may be (skip_limit {}); the last: "
      "{}\nlook at that data, lower the learning rate if gradients are not finite, or raise "
      "skip_limit",
      skipped, batches, allowed, limit, last);
}

}  // namespace flux
