#include "flux/metrics/score_sums.h"

#include <cmath>

namespace flux {

void ScoreSums::merge(const ScoreSums& other) {
  examples += other.examples;
  classes = classes && other.classes;
  probabilities = probabilities && other.probabilities;
  class_numbers = class_numbers || other.class_numbers;
  for (size_t i = 0; i < all().size(); ++i) all()[i]->merge(*other.all()[i]);
}

MetricValues ScoreSums::values() const {
  MetricValues out;
  out.examples = examples;
  out.weight = weight.value();
  if (!(out.weight > 0)) return out;
  if (class_numbers) {
    out.accuracy = right.value() / out.weight;
    return out;
  }
  out.label_mean = label.value() / out.weight;
  out.prediction_mean = prediction.value() / out.weight;
  if (prediction.value() > 0) out.copc = label.value() / prediction.value();
  out.mae = absolute.value() / out.weight;
  out.rmse = std::sqrt(squared.value() / out.weight);
  if (costs()) out.log_loss = loss.value() / out.weight;
  return out;
}

}  // namespace flux
