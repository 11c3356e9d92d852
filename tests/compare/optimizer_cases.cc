// Replays cases of update rules from the standard input (flux/optimizer/rule_cases.h) and says how
// far the worst number is off. tests/compare/update_rules.py runs it.
#include <iostream>

#include <fmt/format.h>

#include "flux/optimizer/rule_cases.h"

int main() {
  const auto replayed = flux::replay_cases(std::cin);
  if (!replayed.is_ok()) {
    std::cerr << replayed.status().message() << "\n";
    return 2;
  }
  const flux::RuleCases& cases = replayed.value();
  for (const auto& [rule, count] : cases.cases) std::cout << fmt::format("{} {}\n", rule, count);
  std::cout << fmt::format("worst {} {}\n", cases.worst, cases.worst_at);
  return 0;
}
