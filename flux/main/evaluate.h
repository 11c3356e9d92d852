// Evaluate and predict with the rows of a saved model: metrics, and probabilities in order.
// Read-only; starts its own threads and joins them. Failure: Status of the data or the job.
#pragma once

#include <span>
#include <string>

#include "flux/base/status.h"
#include "flux/main/saved_model.h"
#include "flux/metrics/metric_values.h"
#include "flux/worker/predictor.h"

namespace flux {

// Metrics over `files` (globs); predictions also go to `sink`, in the order of the records, if it
// is given. kCancelled soon after *stop (if given) turns true.
Result<MetricReport> evaluate(const SavedModel& model, std::span<const std::string> files,
                              const Predictor::Sink& sink = {},
                              const std::atomic<bool>* stop = nullptr);

}  // namespace flux
