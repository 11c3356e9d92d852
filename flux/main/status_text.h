// JobStatus for people: what runs, how fast, what is queued, and every wait by name.
// Pure; no failure.
#pragma once

#include <string>

#include "flux/coordinator/job_status.h"

namespace flux {

std::string status_text(const JobStatus& status);

}  // namespace flux
