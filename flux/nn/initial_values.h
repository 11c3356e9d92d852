// First values of a parameter: each a hash of (parameter name, index, seed) and the same bits on
// every machine. Pure.
#pragma once

#include <cstdint>
#include <span>

#include "flux/nn/graph.h"

namespace flux {

// `out` has parameter.size floats.
void fill_initial(const Parameter& parameter, uint64_t seed, std::span<float> out);

}  // namespace flux
