#include "flux/main/found_format.h"

#include <cstdio>

#include <fmt/format.h>

#include "flux/data/tools/guess_format.h"
#include "flux/job/format_auto.h"

namespace flux {

Result<std::optional<Override>> found_format(const Job& job) {
  if (job.data.format != kFormatAuto) return std::optional<Override>();
  FLUX_ASSIGN_OR_RETURN(const auto files, expand_globs(job.passes.at(0).train));
  std::string note;  // of what the job does not read
  const auto guess = guess_data_options(files.at(0), &note);
  if (!guess.is_ok())
    return invalid("data.format is auto, but it cannot be known: {}\nor say it: data.format",
                   guess.status().message());
  const std::string& format = guess.value().format;
  fmt::print(stderr, "data.format auto: the lines of {} are {}\n", files[0], format);
  if (guess.value().raw_keys && !job.data.raw_keys)
    fmt::print(stderr,
               "note: the keys of {} are as large as those that flux data convert writes; if they "
               "come from it, say data.raw_keys: true\n",
               files[0]);
  return std::optional<Override>(Override{"data.format", format});
}

Result<Job> load_job_with_format(const std::string& path, std::vector<Override> overrides) {
  FLUX_ASSIGN_OR_RETURN(Job job, load_job(path, overrides));
  FLUX_ASSIGN_OR_RETURN(auto found, found_format(job));
  if (!found) return job;
  overrides.push_back(*std::move(found));
  return load_job(path, overrides);
}

}  // namespace flux
