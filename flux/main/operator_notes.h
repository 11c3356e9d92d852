// What an operator should know about a request that the coordinator has taken: that shards will
// have no backup, or that nobody is there to start what was asked for. From what the job said just
// before. Pure; a note is a sentence, empty: nothing to say.
#pragma once

#include <string>

#include "flux/coordinator/job_status.h"

namespace flux {

// `servers`: how many there are to be.
std::string backup_note(const JobStatus& status, uint64_t servers);
// How many servers stay when this one leaves; all of them if it is none.
uint64_t servers_without(const JobStatus& status, const std::string& name);
// Of a cluster without a supervisor; -1: no change.
std::string nobody_starts_note(const JobStatus& status, int64_t workers, int64_t servers);

}  // namespace flux
