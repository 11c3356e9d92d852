#include "flux/optimizer/settings.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "flux/base/text.h"
#include "flux/optimizer/rules.h"

namespace flux {
namespace {

constexpr float kNoBound = std::numeric_limits<float>::infinity();
constexpr std::array<const Rule*, 12> kRules = {
    &kSgdRule,   &kMomentumRule, &kAdagradRule,   &kAdagradSharedRule, &kAdamRule, &kAdamSharedRule,
    &kAdamwRule, &kFtrlRule,     &kGroupFtrlRule, &kRmspropRule,       &kSumRule,  &kSummaryRule};

// What surrounds rules, and the least Shaping that brings it.
struct ShapingUse {
  SettingUse use;
  Shaping from;
};
constexpr ShapingUse kShaping[] = {
    {{&RuleParams::weight_min, -kNoBound}, Shaping::kBounds},
    {{&RuleParams::weight_max, kNoBound}, Shaping::kBounds},
    {{&RuleParams::clip, kNoBound}, Shaping::kClipping},
    {{&RuleParams::clip_norm, kNoBound}, Shaping::kClipping},
    {{&RuleParams::l1, 0.0F}, Shaping::kAll},
    {{&RuleParams::l2, 0.0F}, Shaping::kAll},
};

using S = OptimizerSetting;
using O = OptimizerOptions;
using P = RuleParams;

std::vector<OptimizerSetting> make_settings() {
  std::vector<OptimizerSetting> all;
  const auto add = [&all](const char* name, std::optional<float> O::*number, float P::*param,
                          const char* doc, double min, double max) -> S& {
    S& s = all.emplace_back();
    s.name = name;
    s.doc = doc;
    s.number = number;
    s.param = param;
    s.min = min;
    s.max = max;
    return s;
  };
  add("lr", nullptr, &P::lr, "Learning rate.", 0, 1000).min_open = true;
  add("initial_accumulator", &O::initial_accumulator, &P::initial_accumulator,
      "Where the sum of squared gradients starts; adagrad_shared calls it g0 and needs it above 0.",
      0, 1e6);
  add("epsilon", &O::epsilon, &P::epsilon, "Added to the root, against division by zero.", 0, 1)
      .min_open = true;
  add("beta", &O::beta, &P::beta, "Added to the root; smooths the first steps.", 0, 1e6).min_open =
      true;
  add("beta1", &O::beta1, &P::beta1, "Decay of the mean gradient.", 0, 1).max_open = true;
  add("beta2", &O::beta2, &P::beta2, "Decay of the mean squared gradient.", 0, 1).max_open = true;
  add("momentum", &O::momentum, &P::momentum, "Part of the step before that is kept.", 0, 1)
      .max_open = true;
  S& nesterov = all.emplace_back();
  nesterov.name = "nesterov";
  nesterov.doc = "Whether momentum looks one step ahead.";
  nesterov.flag = &O::nesterov;
  add("decay", &O::decay, &P::decay, "Part of the past that is kept at each step.", 0, 1);
  add("weight_decay", &O::weight_decay, &P::weight_decay,
      "At each step a weight first shrinks by this part, times lr.", 0, 100);
  add("l1", &O::l1, &P::l1,
      "L1 penalty: adds l1 * sign(w) to the gradient; in ftrl and group_ftrl, what makes zeros.", 0,
      1e6);
  add("l2", &O::l2, &P::l2, "L2 penalty: adds l2 * w to the gradient, or the same within ftrl.", 0,
      1e6);
  add("clip", &O::clip, &P::clip, "Each element of the gradient is brought into [-clip, clip].", 0,
      1e30)
      .min_open = true;
  add("clip_norm", &O::clip_norm, &P::clip_norm,
      "A gradient (of a row, or of a run of dense weights) with a larger norm is scaled to it.", 0,
      1e30)
      .min_open = true;
  add("weight_min", &O::weight_min, &P::weight_min, "Weights below it are set to it after a step.",
      -1e30, 1e30);
  add("weight_max", &O::weight_max, &P::weight_max, "Weights above it are set to it after a step.",
      -1e30, 1e30);
  return all;
}

bool uses(const Rule& rule, const OptimizerSetting& setting) {
  if (setting.flag != nullptr) return rule.has_nesterov;
  if (setting.param == &RuleParams::lr) return rule.has_lr;
  return standard_of(rule, setting.param) != nullptr;
}

}  // namespace

std::span<const Rule* const> all_rules() {
  return kRules;
}

const Rule* find_rule(std::string_view name) {
  for (const Rule* rule : kRules) {
    if (name == rule->name) return rule;
  }
  return nullptr;
}

const float* standard_of(const Rule& rule, float RuleParams::*setting) {
  for (const SettingUse& use : rule.uses) {
    if (use.setting == setting) return &use.standard;
  }
  for (const ShapingUse& shaping : kShaping) {
    if (shaping.use.setting == setting && rule.shaping >= shaping.from)
      return &shaping.use.standard;
  }
  return nullptr;
}

RuleParams resolve_params(const OptimizerOptions& options) {
  const Rule& rule = *find_rule(options.rule);
  RuleParams params{};
  params.lr = options.lr;
  params.nesterov = options.nesterov.value_or(false);
  params.clip = params.clip_norm = params.weight_max = kNoBound;
  params.weight_min = -kNoBound;
  for (const OptimizerSetting& setting : optimizer_settings()) {
    if (setting.number == nullptr) continue;
    if (const float* standard = standard_of(rule, setting.param))
      params.*setting.param = (options.*setting.number).value_or(*standard);
  }
  return params;
}

std::vector<std::string> OptimizerSetting::rules() const {
  std::vector<std::string> names;
  for (const Rule* rule : kRules) {
    if (uses(*rule, *this)) names.emplace_back(rule->name);
  }
  return names;
}

std::string OptimizerSetting::defaults() const {
  if (flag != nullptr) return "false";
  std::vector<std::pair<float, std::vector<std::string>>> groups;
  for (const Rule* rule : kRules) {
    const float* standard = standard_of(*rule, param);
    if (standard == nullptr) continue;
    const auto same = std::find_if(groups.begin(), groups.end(),
                                   [&](const auto& group) { return group.first == *standard; });
    auto& group =
        same == groups.end() ? groups.emplace_back(*standard, std::vector<std::string>{}) : *same;
    group.second.emplace_back(rule->name);
  }
  const auto text = [](float x) { return std::isinf(x) ? "none" : fmt::format("{}", x); };
  if (groups.size() == 1) return text(groups[0].first);
  std::vector<std::string> parts;
  for (const auto& [value, names] : groups)
    parts.push_back(fmt::format("{} ({})", text(value), join(names, ", ")));
  return join(parts, ", ");
}

const std::vector<OptimizerSetting>& optimizer_settings() {
  static const std::vector<OptimizerSetting> settings = make_settings();
  return settings;
}

const OptimizerSetting* find_optimizer_setting(std::string_view name) {
  for (const OptimizerSetting& setting : optimizer_settings()) {
    if (setting.name == name) return &setting;
  }
  return nullptr;
}

bool uses_setting(std::string_view rule, const OptimizerSetting& setting) {
  const Rule* found = find_rule(rule);
  return found != nullptr && uses(*found, setting);
}

}  // namespace flux
