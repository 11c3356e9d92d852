#include <algorithm>

#include "flux/base/hash.h"
#include "flux/data/features/feature.h"

namespace flux {

const std::vector<FeatureDef>& feature_defs() {
  static const std::vector<FeatureDef> all = {feature_bucketize(), feature_clip(),
                                              feature_cross(),     feature_hash(),
                                              feature_log1p(),     feature_normalise()};
  return all;
}

const FeatureDef* find_feature(const std::string& op) {
  const auto at = std::find_if(feature_defs().begin(), feature_defs().end(),
                               [&](const FeatureDef& def) { return def.name == op; });
  return at == feature_defs().end() ? nullptr : &*at;
}

std::vector<std::string> feature_names() {
  std::vector<std::string> names;
  for (const FeatureDef& def : feature_defs()) names.push_back(def.name);
  return names;
}

uint64_t key_space(const std::string& name, const std::string& keys) {
  return hash_bytes(keys.empty() ? name : keys);
}

}  // namespace flux
