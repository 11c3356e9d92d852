#include "flux/nn/parameter_attrs.h"

#include <algorithm>

#include "flux/nn/attributes.h"

namespace flux {
namespace {

struct InitName {
  const char* name;
  InitKind kind;
  float standard;  // without init_scale
};
constexpr InitName kInits[] = {
    {"uniform", InitKind::kUniform, 0.01F},
    {"normal", InitKind::kNormal, 0.01F},
    {"constant", InitKind::kConstant, 0.0F},
    {"xavier", InitKind::kXavier, 1.0F},
    {"he", InitKind::kHe, 1.0F},
};

std::vector<AttrSpec> make_attributes() {
  AttrSpec init;
  init.name = "init";
  init.type = AttrType::kString;
  for (const InitName& one : kInits) init.choices.emplace_back(one.name);
  init.default_value = std::string();
  init.doc =
      "First values of the layer's matrices (of all its parameters, if it has none): uniform in "
      "[-init_scale, init_scale), normal with the deviation init_scale, constant, xavier (uniform, "
      "by the number of inputs and outputs) or he (normal, by the number of inputs).";
  AttrSpec scale;
  scale.name = "init_scale";
  scale.type = AttrType::kFloat;
  scale.default_value = 0.0;
  scale.min = -1000;
  scale.max = 1000;
  scale.doc =
      "Bound, deviation or constant of `init`, by default 0.01, 0.01 and 0; a factor of xavier and "
      "he, by default 1.";
  AttrSpec lr;
  lr.name = "lr_scale";
  lr.type = AttrType::kFloat;
  lr.default_value = 1.0;
  lr.min = 1e-6;
  lr.max = 1e6;
  lr.doc = "Multiplies the learning rate of the layer's parameters.";
  return {init, scale, lr};
}

Status set_init(const std::map<std::string, AttrValue>& given, const std::string& where,
                std::vector<Parameter>* parameters) {
  const auto scale = given.find("init_scale");
  const auto name = given.find("init");
  if (name == given.end()) {
    return scale == given.end()
               ? Status::ok()
               : invalid("{}'init_scale' needs 'init': it says how the scale is used", where);
  }
  const auto* init = std::find_if(std::begin(kInits), std::end(kInits), [&](const InitName& one) {
    return one.name == std::get<std::string>(name->second);
  });
  Initializer wanted{init->kind, init->standard};
  if (scale != given.end()) wanted.value = static_cast<float>(std::get<double>(scale->second));
  if (wanted.kind != InitKind::kConstant && wanted.value < 0)
    return invalid("{}'init_scale' must not be negative with init: {}", where, init->name);
  const auto trained = [](const Parameter& p) { return p.update == UpdateKind::kOptimizer; };
  const bool matrices =
      std::any_of(parameters->begin(), parameters->end(),
                  [&](const Parameter& p) { return trained(p) && p.shape.size() > 1; });
  for (Parameter& p : *parameters)
    if (trained(p) && (!matrices || p.shape.size() > 1)) p.init = wanted;
  return Status::ok();
}

}  // namespace

const std::vector<AttrSpec>& parameter_attributes() {
  static const std::vector<AttrSpec> attributes = make_attributes();
  return attributes;
}

std::map<std::string, AttrValue> take_parameter_attributes(
    const std::vector<AttrSpec>& own, std::map<std::string, AttrValue>* attrs) {
  std::map<std::string, AttrValue> taken;
  for (const AttrSpec& spec : parameter_attributes()) {
    const bool is_own = std::any_of(own.begin(), own.end(), [&](const AttrSpec& attribute) {
      return attribute.name == spec.name;
    });
    if (is_own) continue;
    if (auto node = attrs->extract(spec.name)) taken.insert(std::move(node));
  }
  return taken;
}

Status apply_parameter_attributes(const std::map<std::string, AttrValue>& given,
                                  const std::string& where, std::vector<Parameter>* parameters) {
  if (given.empty()) return Status::ok();
  FLUX_ASSIGN_OR_RETURN(const auto checked, check_attributes(parameter_attributes(), given, where));
  if (parameters->empty()) {
    return invalid("{}'{}' is for layers with parameters, and this one has none", where,
                   given.begin()->first);
  }
  std::map<std::string, AttrValue> values;
  for (const auto& [name, value] : given) values[name] = checked.at(name);
  FLUX_RETURN_IF_ERROR(set_init(values, where, parameters));
  const auto lr_scale = static_cast<float>(std::get<double>(checked.at("lr_scale")));
  for (Parameter& p : *parameters)
    if (p.update == UpdateKind::kOptimizer) p.lr_scale *= lr_scale;
  return Status::ok();
}

}  // namespace flux
