// check_features(): data.features, each problem at the field that has it.
#include <algorithm>

#include "flux/base/text.h"
#include "flux/data/feature_check.h"
#include "flux/job/validate.h"

namespace flux {
namespace {

const YamlNode* features_of_job(const YamlNode& root) {
  const YamlEntry* data = root.find("data");
  const YamlEntry* features = data != nullptr ? data->value.find("features") : nullptr;
  return features != nullptr && features->value.is_list() ? &features->value : nullptr;
}

// Settings that its op does not use.
void check_settings(const YamlNode& feature, const FeatureDef& def, Problems* problems) {
  for (const YamlEntry& entry : feature.entries) {
    if (entry.name == "name" || entry.name == "op" || entry.name == "of") continue;
    if (std::find(def.settings.begin(), def.settings.end(), entry.name) != def.settings.end())
      continue;
    problems->add(entry.origin, fmt::format("'{}' is not used by the op {}", entry.name, def.name),
                  def.settings.empty() ? "it has no settings"
                                       : fmt::format("its settings: {}", join(def.settings, ", ")));
  }
}

}  // namespace

void check_features(const YamlNode& root, const Job& job, Problems* problems) {
  const YamlNode* list = features_of_job(root);
  if (list == nullptr || !problems->empty()) return;
  for (size_t i = 0; i < list->items.size(); ++i)
    if (const FeatureDef* def = find_feature(job.data.features[i].op))
      check_settings(list->items[i], *def, problems);
  if (!problems->empty()) return;
  for (const FeatureMistake& mistake : feature_mistakes(job.data)) {
    const YamlNode& feature = list->items[mistake.feature];
    const YamlEntry* field = feature.find(mistake.field);
    problems->add(
        field != nullptr ? field->value.origin : feature.origin,
        fmt::format("feature '{}': {}", job.data.features[mistake.feature].name, mistake.what),
        "see docs/using/features.md");
  }
}

}  // namespace flux
