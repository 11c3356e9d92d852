#include "flux/coordinator/same_job.h"

#include "flux/base/text.h"

namespace flux {

Status check_same_job(const CheckpointStore& store, const Manifest& found,
                      const std::map<std::string, std::string>& model,
                      const std::vector<std::string>& passes, const char* advice) {
  std::vector<std::string> differences = model_differences(found.model, model);
  const bool same_model = differences.empty();
  const auto name = [&](size_t p) { return p < passes.size() ? passes[p] : "nothing"; };
  for (size_t p = 0; p < found.closed.size(); ++p)
    if (found.closed[p].name != name(p))
      differences.push_back(fmt::format("passes.{}: '{}' in the checkpoint, '{}' in the job", p,
                                        found.closed[p].name, name(p)));
  const size_t open = found.closed.size();
  if (found.geometry != 0 && found.open_pass != name(open))
    differences.push_back(fmt::format("passes.{}: '{}' is open in the checkpoint, '{}' in the job",
                                      open, found.open_pass, name(open)));
  if (differences.empty()) return Status::ok();
  if (same_model)
    return invalid(
        "the passes of the job are not those of the checkpoint in {}:\n  {}\n"
        "passes that were begun stay in the list, in their places and under their names, also when "
        "their data is gone; new ones come behind them\n{}",
        store.path_of(found.number), join(differences, "\n  "), advice);
  return invalid("the checkpoint in {} was made by another model:\n  {}\n{}",
                 store.path_of(found.number), join(differences, "\n  "), advice);
}

}  // namespace flux
