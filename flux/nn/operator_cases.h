// Cases of operators as text, with the numbers that another program found: each is run here and
// held against them. tests/compare/operators.py writes such files (its judge is torch); a small
// one lies in tests/golden/operators.txt.
//
// One word per line begins a part; numbers follow on the line:
//   case <name>            a new case
//   op <operator>          batch <n>
//   attr <name> <int|float|bool|text|texts> <value>      (texts: with commas)
//   input <length> <dim> <numbers>
//   slots <n>              table <dim> <rows>      counts <keys of each slot of each example>
//   keys <row of each>     values <of each key>    noise <n>      (nn/operator_run.h: Keys)
//   label <numbers>        weight <numbers>        parameters <numbers>        gradient <numbers>
//   want output|loss|parameters|table <numbers>          want input <i> <numbers>
//   end
// Failure: a line in `failures` for each case that differs or cannot be read.
#pragma once

#include <istream>
#include <string>
#include <vector>

namespace flux {

struct CaseReport {
  size_t cases = 0, numbers = 0;  // compared
  std::vector<std::string> failures;
};
CaseReport check_operator_cases(std::istream& in);

}  // namespace flux
