// Metrics as JSON, in summary.json and in the events of `flux run --json`; docs/using/metrics.md
// says what each name means. A metric without a meaning is null. Pure.
#pragma once

#include <nlohmann/json.hpp>

#include "flux/metrics/metric_values.h"

namespace flux {

// {"examples":..., "loss":..., "heads": [{"head":..., "slice":..., "auc":..., ...}]}
nlohmann::ordered_json metrics_json(const MetricReport& report);

}  // namespace flux
