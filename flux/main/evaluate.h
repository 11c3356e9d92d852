// Evaluate and predict with an embedded job's current rows. Read-only. Failure: Status.
#pragma once

#include <span>
#include <string>

#include "flux/base/status.h"
#include "flux/main/embedded.h"
#include "flux/nn/auc.h"
#include "flux/worker/predictor.h"

namespace flux {

// Metrics over `files` (globs); predictions also go to `sink`, in the order of the records, if it
// is given.
Result<BinaryMetrics> evaluate(const Embedded& e, std::span<const std::string> files,
                               const Predictor::Sink& sink = {});

}  // namespace flux
