// Cases of update rules as text, made by tests/compare/update_rules.py from torch and numpy:
//
//   case adam lr=0.01 beta1=0.9       settings that are not given have their defaults
//   weights 0.5 -0.25
//   step 1 0.1 -0.2                   scale of the learning rate, then the gradient
//   want 0.49 -0.24                   weights after the steps so far
//
// replay_cases() makes every step and compares. For tests. Failure: kInvalid names the line.
#pragma once

#include <cstddef>
#include <istream>
#include <map>
#include <string>

#include "flux/base/status.h"

namespace flux {

struct RuleCases {
  std::map<std::string, size_t> cases;  // by rule
  size_t numbers = 0;                   // compared
  double worst = 0;                     // |got - want| / (1 + |want|)
  std::string worst_at;                 // "line 12 (adam), weight 3: 0.5, not 0.25"
};

Result<RuleCases> replay_cases(std::istream& in);

}  // namespace flux
