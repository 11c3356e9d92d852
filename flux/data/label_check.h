// Labels that a loss of probabilities cannot be of (DataOptions::unit_labels).
// Pure functions over a batch; safe from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flux/data/batch.h"
#include "flux/data/dataset.h"

namespace flux {

struct WrongLabel {
  uint32_t example = 0, label = 0;
  float value = 0;
  // What is wrong, and what to do.
  std::string text(const std::vector<std::string>& labels) const;
};

// The first label that is not from 0 to 1 though it has to be.
std::optional<WrongLabel> find_wrong_label(const Batch& batch,
                                           const std::vector<uint32_t>& unit_labels);

}  // namespace flux
