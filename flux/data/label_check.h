// Labels that a loss of probabilities cannot be of (DataOptions::unit_labels), and weights of
// examples that are too large to be added up.
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

constexpr float kExampleWeightMax = 1U << 20;
struct WrongWeight {
  uint32_t example = 0;
  float value = 0;
  std::string text() const;
};
std::optional<WrongWeight> find_wrong_weight(const Batch& batch);

// The first label that is not from 0 to 1 though it has to be.
std::optional<WrongLabel> find_wrong_label(const Batch& batch,
                                           const std::vector<uint32_t>& unit_labels);

}  // namespace flux
