// JobStatus as JSON, for /status and `flux status --json`.
//
// Every key is always there (null where there is nothing to say), so that programs need no
// guesses; docs/using/cluster.md names them. 64-bit identities are hexadecimal text, because JSON
// readers round large numbers. Pure; safe from every thread.
#pragma once

#include <string>

#include "flux/base/status.h"
#include "flux/coordinator/job_status.h"

namespace flux {

std::string status_json(const JobStatus& status);
// The inverse, for `flux status`. Keys that are absent keep their defaults; kCorrupt if it is no
// JSON object or a value has another type.
Result<JobStatus> parse_status_json(const std::string& text);

}  // namespace flux
