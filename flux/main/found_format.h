// The format of a job's files where the job leaves it open (data.format: auto): known by their
// lines, said on stderr, and from then on as if the job had named it. Failure: as expand_globs()
// and guess_data_options(): a file that is not there, or not clear.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/job/job.h"

namespace flux {

// Which files are asked.
struct FormatOf {
  bool evaluated = false;          // those that a model is evaluated on, else the training files
  std::vector<std::string> input;  // of those: globs; empty: data.test
};

// To be put over the job; none: the job names its format.
Result<std::optional<Override>> found_format(const Job& job, const FormatOf& of = {});

// load_job(), with the format that its files have.
Result<Job> load_job_with_format(const std::string& path, std::vector<Override> overrides,
                                 const FormatOf& of = {});

}  // namespace flux
