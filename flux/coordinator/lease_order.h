// The order in which the blocks of a section are leased: drawn from the geometry's seed and the
// section alone, so that whoever trains the same section again meets the same order.
//
// Blocks are drawn one by one; those of a file that is read from front to back come together, in
// order, where the first of them would. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "flux/data/geometry.h"
#include "flux/protocol/batch_id.h"

namespace flux {

std::vector<uint32_t> lease_order(const Geometry& geometry, const BlockId& section);

}  // namespace flux
