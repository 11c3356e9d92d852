// Evaluate and predict with the rows of a saved model: metrics, and probabilities in order.
// Read-only; starts its own threads and joins them. Failure: Status of the data or the job.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "flux/base/status.h"
#include "flux/main/saved_model.h"
#include "flux/metrics/metric_values.h"
#include "flux/worker/predictor.h"

namespace flux {

// Whether records that are set aside are told on standard error.
enum class SetAside : uint8_t { kTold, kUntold };
// Metrics over `files` (globs), of every phase. kCancelled soon after *stop (if given) turns true.
Result<MetricReport> evaluate(const SavedModel& model, std::span<const std::string> files,
                              const std::atomic<bool>* stop = nullptr,
                              SetAside set_aside = SetAside::kTold);
// Metrics of the network of one phase, whose predictions go to `sink`, in the order of the records.
Result<MetricReport> predict(const SavedModel& model, std::span<const std::string> files,
                             uint32_t phase, const Predictor::Sink& sink);

}  // namespace flux
