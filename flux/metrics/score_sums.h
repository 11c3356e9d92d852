// ScoreSums: what the means of scored examples are made of, and those means.
//
// Sums are exact and a flag that has changed stays so: merging depends on no order. Plain values;
// not thread-safe.
#pragma once

#include <array>
#include <cstdint>

#include "flux/metrics/exact_sum.h"
#include "flux/metrics/metric_values.h"

namespace flux {

struct ScoreSums {
  uint64_t examples = 0;
  bool classes = true;         // every label is 0 or 1
  bool probabilities = true;   // every prediction is in [0, 1]
  bool class_numbers = false;  // predictions are no rates: only whether they are right counts
  // Of each example times its weight; loss: while costs() holds.
  ExactSum weight, label, prediction, loss, absolute, squared, right;

  void look_at(double label_of_one, double prediction_of_one) {
    classes = classes && (label_of_one == 0 || label_of_one == 1);
    probabilities = probabilities && prediction_of_one >= 0 && prediction_of_one <= 1;
  }
  // A log loss has a meaning.
  bool costs() const { return classes && probabilities && !class_numbers; }
  void merge(const ScoreSums& other);
  MetricValues values() const;  // the means; nothing that needs a ranking
  // In the order of their bytes.
  std::array<ExactSum*, 7> all() {
    return {&weight, &label, &prediction, &loss, &absolute, &squared, &right};
  }
  std::array<const ExactSum*, 7> all() const {
    return {&weight, &label, &prediction, &loss, &absolute, &squared, &right};
  }
};

}  // namespace flux
