#include "flux/main/checked_job.h"

#include <cstdio>

#include <fmt/format.h>

#include "flux/job/dense_memory.h"
#include "flux/main/memory_watch.h"
#include "flux/nn/graph_checks.h"

namespace flux {

Result<Job> load_checked_job(const JobArguments& arguments, const FormatOf& format_of, bool here) {
  std::vector<Override> overrides;
  for (const std::string& text : arguments.sets) {
    FLUX_ASSIGN_OR_RETURN(Override one, parse_override(text));
    overrides.push_back(std::move(one));
  }
  if (arguments.threads >= 0) overrides.push_back({"threads", std::to_string(arguments.threads)});
  FLUX_ASSIGN_OR_RETURN(Job job,
                        load_job_with_format(arguments.job, std::move(overrides), format_of));
  // The whole model is checked before anything starts.
  FLUX_ASSIGN_OR_RETURN(const auto graphs, build_graphs(job, features_of(job.data)));
  if (format_of.evaluated) return job;
  if (here) FLUX_RETURN_IF_ERROR(check_dense_memory(job, graphs, MemoryWatch().limit_bytes()));
  for (const auto& graph : graphs)
    for (const std::string& warning : graph_warnings(*graph))
      fmt::print(stderr, "warning: {}\n", warning);
  return job;
}

}  // namespace flux
