#include "flux/nn/operator_cases.h"

#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "flux/nn/graph.h"

namespace flux {
namespace {

std::string golden_text() {
  std::ifstream in(FLUX_SOURCE_DIR "/tests/golden/operators.txt");
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(OperatorCases, AgreeWithTorch) {
  std::istringstream in(golden_text());
  const CaseReport report = check_operator_cases(in);
  for (const std::string& failure : report.failures) ADD_FAILURE() << failure;
  EXPECT_GE(report.cases, 100U);
}

// What torch has no counterpart of, because it is not a function of numbers alone.
TEST(OperatorCases, CoverEveryOperator) {
  const std::string text = golden_text();
  const std::set<std::string> without = {"sequence_mask", "dropout"};
  for (const OperatorInfo& info : operator_infos())
    EXPECT_NE(without.contains(info.name),
              text.find("\nop " + info.name + "\n") != std::string::npos)
        << info.name;
}

TEST(OperatorCases, ADifferenceIsReported) {
  std::istringstream in(
      "case a\nop neg\nbatch 1\ninput 1 2 1 2\ngradient 1 1\n"
      "want output -1 -2\nwant input 0 -1 1\nend\n");
  const CaseReport report = check_operator_cases(in);
  ASSERT_EQ(report.failures.size(), 1U);
  EXPECT_EQ(report.failures[0], "case a (neg): input 0[1] is -1, wanted 1");
}

TEST(OperatorCases, RowsAreReadByKeys) {
  const std::string keys =
      "op embedding\nbatch 1\nattr table text t\nslots 2\ntable 1 2 3\ncounts 2 0\n"
      "values 10 100\ngradient 1 1\nwant output 320 0\nwant table 100 11\nend\n";
  std::istringstream in("case a\nkeys 1 0\n" + keys + "case b\nkeys 1 2\n" + keys);
  const CaseReport report = check_operator_cases(in);
  ASSERT_EQ(report.failures.size(), 2U);
  EXPECT_EQ(report.failures[0], "case a (embedding): output[0] is 230, wanted 320");
  EXPECT_EQ(report.failures[1], "case b (embedding): key of row 2, but there are 2 rows");
}

}  // namespace
}  // namespace flux
