// How many batches of a pass may be skipped (poison, not finite) before the job has to stop.
// Pure functions. Skipping a few bad batches saves a run; skipping many hides that the data or the
// model is broken.
#pragma once

#include <cstdint>
#include <string>

#include "flux/base/status.h"

namespace flux {

// Of a pass of so many batches (every epoch and phase counted): the share `limit` of them, at least
// 1; none if the limit is 0.
uint64_t skips_allowed(uint64_t batches, double limit);

// Ok while `skipped` batches of the pass are allowed, else kInvalid with both numbers, the last
// batch and its reason, and what to do. To be asked before a verdict is logged, with the batch in
// question counted: the one too many is then not skipped but ends the job.
Status check_skips(uint64_t skipped, uint64_t batches, double limit, const std::string& last);

}  // namespace flux
