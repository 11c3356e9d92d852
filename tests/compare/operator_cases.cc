// Runs a file of operator cases (nn/operator_cases.h) and says which differ. See operators.py.
#include "flux/nn/operator_cases.h"

#include <cstdio>
#include <fstream>

#include <fmt/format.h>

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: operator_cases FILE\n");
    return 2;
  }
  std::ifstream in(argv[1]);
  const flux::CaseReport report = flux::check_operator_cases(in);
  for (const std::string& failure : report.failures) fmt::print("{}\n", failure);
  fmt::print("{} cases, {} numbers, {} differ\n", report.cases, report.numbers,
             report.failures.size());
  return report.failures.empty() && report.cases > 0 ? 0 : 1;
}
