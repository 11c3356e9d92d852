// The settings of update rules: name, range and sentence of each, and which rules use it with which
// default. Checks, messages, the job's schema and the reference page come from this table.
// Immutable; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "flux/optimizer/optimizer.h"
#include "flux/optimizer/rule_kernels.h"

namespace flux {

struct OptimizerSetting {
  std::string name;
  std::string doc;  // one sentence, without the rules
  // Exactly one of these is set, unless it is lr.
  std::optional<float> OptimizerOptions::*number = nullptr;
  std::optional<bool> OptimizerOptions::*flag = nullptr;
  // Range of a number; an open end is itself refused.
  double min = 0, max = 0;
  bool min_open = false, max_open = false;
  float RuleParams::*param = nullptr;  // of a number

  // The rules that use it, in the order of optimizer_rules().
  std::vector<std::string> rules() const;
  // What rules take it for when it is not given: "0.99 (rmsprop), 0.9999999 (summary)".
  std::string defaults() const;
};

// All but the rule's name, lr first.
const std::vector<OptimizerSetting>& optimizer_settings();
// By name, or null.
const OptimizerSetting* find_optimizer_setting(std::string_view name);
bool uses_setting(std::string_view rule, const OptimizerSetting& setting);

}  // namespace flux
