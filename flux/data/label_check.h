// Labels that a loss of probabilities or of classes cannot be of (DataOptions::label_rules), and
// weights of examples that are too large to be added up.
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
  uint32_t example = 0;
  LabelRule rule;
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

// The first label that is not what its loss needs.
std::optional<WrongLabel> find_wrong_label(const Batch& batch, const std::vector<LabelRule>& rules);

}  // namespace flux
