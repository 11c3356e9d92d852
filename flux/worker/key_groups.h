// Which group each key of a batch belongs to (api/model_shape.h), by its slot.
// Pure; no failure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "flux/data/batch.h"

namespace flux {

// `slot_groups`: by slot, from 0; empty: there is one group, and `out` stays empty.
void find_key_groups(const Batch& batch, std::span<const uint8_t> slot_groups,
                     std::vector<uint8_t>* out);

}  // namespace flux
