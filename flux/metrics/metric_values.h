// MetricValues: what an evaluation says about one head and slice; and the one table of names.
// Every output (JSON, TensorBoard, report, command line) takes names and sentences from the table.
// Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "flux/metrics/group_metrics.h"
#include "flux/metrics/score_runs.h"

namespace flux {

// Which predictions: of this head of the network (empty: its only one), of this slice of the
// examples (empty: all), such as "slot3=17", of the network of this phase (empty: the only one).
struct MetricKey {
  std::string head, slice;
  std::string phase = {};
  auto operator<=>(const MetricKey&) const = default;
};

// Without a value: it has no meaning here (one class only, no groups, labels that are no classes;
// of a head that predicts one of many classes everything but its accuracy).
struct MetricValues {
  uint64_t examples = 0;
  double weight = 0;  // sum of the examples' weights
  bool exact = true;  // false: too many examples; what needs a ranking is by buckets, or absent
  std::optional<double> auc, log_loss, label_mean, prediction_mean, copc, mae, rmse, bucket_error,
      calibration_error, gauc, uauc, accuracy;
  uint64_t groups = 0;
  std::vector<AtK> at;
  std::vector<CalibrationBin> calibration;
};

struct MetricField {
  const char* name;
  const char* sentence;
  std::optional<double> MetricValues::*value;
};
std::span<const MetricField> metric_fields();

// All of one evaluation.
struct MetricReport {
  struct Row {
    MetricKey key;
    MetricValues values;
  };
  uint64_t examples = 0;
  double loss = 0;        // mean of what the network minimises
  std::vector<Row> rows;  // head after head as the network has them, each with its slices

  // Of the first head over all examples; nullptr: nothing was evaluated.
  const MetricValues* whole() const;
  // Adds the report of another network over the same examples; losses add up.
  void add_phase(const std::string& phase, MetricReport other);
};

// "join/click/slot3=17", what there is of it; "" for the only head over all examples.
std::string to_string(const MetricKey& key);

// "auc 0.77921 · log_loss 0.46120 · ...": every value there is.
std::string metric_line(const MetricValues& values);

}  // namespace flux
