// flux models: the ready-made jobs of models/, which the build puts into the binary.
#include <cstdio>
#include <string_view>
#include <vector>

#include "flux/base/text.h"
#include "flux/main/commands.h"
#include "flux/main/ready_models.h"

namespace flux {
namespace {

struct ReadyModel {
  std::string_view name;
  std::string_view yaml;
  // The first line of its comment.
  std::string_view title() const { return yaml.substr(2, yaml.find('\n') - 2); }
};

const std::vector<ReadyModel>& ready_models() {
  static const std::vector<ReadyModel> all = {
#include "models.inc"
  };
  return all;
}

}  // namespace

std::vector<std::string> ready_model_names() {
  std::vector<std::string> names;
  for (const ReadyModel& model : ready_models()) names.emplace_back(model.name);
  return names;
}

int models_command(const std::string& name) {
  const std::vector<std::string> names = ready_model_names();
  for (const ReadyModel& model : ready_models()) {
    if (name.empty()) fmt::print("{:<10} {}\n", model.name, model.title());
    if (name == model.name) {
      fmt::print("{}", model.yaml);
      return 0;
    }
  }
  if (name.empty()) {
    fmt::print("\nflux models NAME prints one as a job file to start from.\n");
    return 0;
  }
  return report(invalid("there is no model '{}'{}; models: {}", name, did_you_mean(name, names),
                        join(names, ", ")));
}

}  // namespace flux
