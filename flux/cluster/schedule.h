// Schedule: which (pass, phase, epoch) comes next. A pass runs its phases in order, each for its
// epochs, and closes; then the next pass. Pure values.
#pragma once

#include <cstdint>

#include "flux/protocol/batch_id.h"

namespace flux {

struct Schedule {
  uint32_t passes = 1;
  uint16_t phases = 1;
  uint16_t epochs = 1;

  // Sections of one pass, in order.
  uint32_t sections() const { return static_cast<uint32_t>(phases) * epochs; }
  BlockId section(uint32_t pass, uint32_t i) const {
    return BlockId{pass, static_cast<uint16_t>(i / epochs), static_cast<uint16_t>(i % epochs), 0};
  }
};

}  // namespace flux
