// The format of a job's files where the job leaves it open (data.format: auto): known by their
// lines, said on stderr, and from then on as if the job had named it. Failure: as expand_globs()
// and guess_data_options(): a file that is not there, or not clear.
#pragma once

#include <optional>

#include "flux/base/status.h"
#include "flux/job/job.h"

namespace flux {

// To be put over the job; none: the job names its format.
Result<std::optional<Override>> found_format(const Job& job);

// load_job(), with the format that its files have.
Result<Job> load_job_with_format(const std::string& path, std::vector<Override> overrides);

}  // namespace flux
