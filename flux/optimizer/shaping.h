// ShapedOptimizer: a rule with what is done around it: the gradient is clipped and gets the terms
// of L1 and L2 before the rule sees it, and the weights are kept within bounds afterwards.
//
//   g = clamp(g, -clip, clip);  g = g * clip_norm / |g| if |g| > clip_norm (|g|: norm of the
//   vector) g = g + (l2 * w + l1 * sign(w)) the rule;  w = clamp(w, weight_min, weight_max)
//
// A rule with none of these settings is never wrapped, so it pays nothing.
// Threads: immutable; the prepared gradient lies in memory of the calling thread.
#pragma once

#include <memory>

#include "flux/optimizer/optimizer.h"
#include "flux/optimizer/rule_kernels.h"

namespace flux {

enum class Shaping : unsigned char;  // rules.h

// Whether anything of this is asked for.
bool wants_shaping(const RuleParams& params, Shaping shaping);
std::unique_ptr<const Optimizer> shape_optimizer(std::unique_ptr<const Optimizer> rule,
                                                 const RuleParams& params, Shaping shaping);

}  // namespace flux
