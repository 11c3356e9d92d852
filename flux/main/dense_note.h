// What dense_transform: log1p does to numbers below 0 without a word: they become 0.
// Failure: as reading the file fails.
#pragma once

#include <string>

#include "flux/base/status.h"
#include "flux/job/job.h"

namespace flux {

// A sentence about the dense values of the file that are below 0; "": there are none, or the job
// says itself what becomes of them. criteo_tsv is meant to lose them. `data`: how the file is read.
Result<std::string> dense_note(const std::string& file, const DataOptions& data, const Job& job);

}  // namespace flux
