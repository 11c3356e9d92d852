// Reference optimizers: the update rules as plain loops over single floats, kept for ever as the
// oracle of the fast kernels. Same order of operations, so results are equal bit for bit.
// Threads: immutable. For tests and for the reference table only.
#pragma once

#include <memory>

#include "flux/optimizer/optimizer.h"

namespace flux {

// `options` must be valid.
std::unique_ptr<const Optimizer> make_reference_optimizer(const OptimizerOptions& options);

}  // namespace flux
