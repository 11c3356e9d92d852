#include "flux/main/data_source.h"

#include <algorithm>
#include <cstdio>
#include <thread>
#include <utility>

#include "flux/data/tools/guess_format.h"
#include "flux/job/job.h"
#include "flux/main/found_format.h"

namespace flux {

Result<DataSource> find_source(const DataArguments& arguments) {
  DataSource out;
  out.threads = arguments.threads == 0 ? std::max(1U, std::thread::hardware_concurrency())
                                       : arguments.threads;
  std::vector<std::string> patterns = arguments.files;
  if (arguments.job.empty() && !arguments.sets.empty())
    return invalid("--set {}: changes a field of a job, but there is none; name it: --job JOB",
                   arguments.sets[0]);
  if (!arguments.job.empty()) {
    std::vector<Override> overrides;
    for (const std::string& text : arguments.sets) {
      FLUX_ASSIGN_OR_RETURN(Override one, parse_override(text));
      overrides.push_back(std::move(one));
    }
    FLUX_ASSIGN_OR_RETURN(const Job job, load_job_with_format(arguments.job, std::move(overrides)));
    out.options = job.data;
    if (patterns.empty())
      for (const PassSpec& pass : job.passes)
        patterns.insert(patterns.end(), pass.train.begin(), pass.train.end());
  }
  if (std::find(patterns.begin(), patterns.end(), "-") != patterns.end())
    return invalid(
        "-: standard input is not read, as data is looked at more than once and in many places; "
        "write it to a file first (a file of this name is ./-)");
  if (patterns.empty()) return invalid("name the files, or a job that does: --job JOB");
  FLUX_ASSIGN_OR_RETURN(out.files, expand_globs(patterns));
  if (arguments.job.empty()) {
    std::string note;
    FLUX_ASSIGN_OR_RETURN(out.options, guess_data_options(out.files[0], &note));
    if (!note.empty()) fmt::print(stderr, "note: {}\n", note);
  }
  return out;
}

}  // namespace flux
