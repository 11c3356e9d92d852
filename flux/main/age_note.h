// What several workers do to gradients in mode async: they get old.
//
// Between a worker's pull and its push the others push, too, so a gradient is computed from
// parameters that lack their last batches. What counts is how many examples that is. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "flux/job/job.h"

namespace flux {

// A sentence with the age that is to be expected and what to do about it; "": none is worth a word.
std::string age_note(const Job& job, uint32_t workers);

}  // namespace flux
