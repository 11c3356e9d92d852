// What ftrl and group_ftrl say of themselves: all but their name and their kernels is the same
// (state, first values, settings). Pure.
#pragma once

#include "flux/optimizer/rules.h"

namespace flux {

inline constexpr SettingUse kFtrlUses[] = {{&RuleParams::initial_accumulator, 0.0F},
                                           {&RuleParams::beta, 1.0F},
                                           {&RuleParams::l1, 0.0F},
                                           {&RuleParams::l2, 0.0F}};

constexpr Rule ftrl_rule(const char* name, RuleKernels narrow, const RuleKernels* wide) {
  return {
      .name = name,
      .state_size = ftrl_state_size,
      .init_state = init_ftrl_state,
      .narrow = narrow,
      .wide = wide,
      .uses = kFtrlUses,
      .shaping = Shaping::kClipping,
  };
}

}  // namespace flux
