#include <algorithm>
#include <vector>

#include "flux/nn/operator.h"

namespace flux {

#define FLUX_OPERATOR(name) OperatorDef operator_##name();
#include "operators.inc"
#undef FLUX_OPERATOR

namespace {
const std::vector<OperatorDef>& operators() {
  static const std::vector<OperatorDef> all = [] {
    std::vector<OperatorDef> defs;
#define FLUX_OPERATOR(name) defs.push_back(operator_##name());
#include "operators.inc"
#undef FLUX_OPERATOR
    std::sort(defs.begin(), defs.end(),
              [](const auto& a, const auto& b) { return a.info.name < b.info.name; });
    return defs;
  }();
  return all;
}
}  // namespace

AttrSpec loss_weight_attribute() {
  AttrSpec weight;
  weight.name = kLossWeight;
  weight.type = AttrType::kFloat;
  weight.default_value = 1.0;
  weight.min = 0;
  weight.max = 1e6;
  weight.doc = "how much this loss counts among several";
  return weight;
}

const OperatorDef* find_operator(const std::string& name) {
  for (const OperatorDef& def : operators())
    if (def.info.name == name) return &def;
  return nullptr;
}

const std::vector<OperatorInfo>& operator_infos() {
  static const std::vector<OperatorInfo> infos = [] {
    std::vector<OperatorInfo> all;
    for (const OperatorDef& def : operators()) all.push_back(def.info);
    return all;
  }();
  return infos;
}

}  // namespace flux
