// JobStatus as Prometheus text (exposition format 0.0.4), for /metrics.
//
// Every metric has a sentence of help and a type; names begin with flux_. Counters are totals since
// the process started, as far as the coordinator knows them. Pure; safe from every thread.
#pragma once

#include <string>

#include "flux/coordinator/job_status.h"

namespace flux {

std::string prometheus_text(const JobStatus& status);

}  // namespace flux
