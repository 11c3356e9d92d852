// Schedule: which (pass, phase, epoch) comes next. A pass runs its phases in order, each for its
// epochs, and closes; then the next pass. Pure values.
#pragma once

#include <cstdint>
#include <optional>

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
  // The place of a section in its pass, as section() counts; nothing when the schedule has no such
  // section.
  std::optional<uint32_t> index(const BlockId& section) const {
    if (section.pass >= passes || section.phase >= phases || section.epoch >= epochs) return {};
    return static_cast<uint32_t>(section.phase) * epochs + section.epoch;
  }
};

}  // namespace flux
