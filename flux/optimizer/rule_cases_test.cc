#include "flux/optimizer/rule_cases.h"

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "flux/optimizer/optimizer.h"

namespace flux {
namespace {

// What torch and numpy found, in double; see tests/compare/update_rules.py.
TEST(RuleCases, TheGoldenFileIsReproduced) {
  std::ifstream in(FLUX_SOURCE_DIR "/tests/golden/optimizers.txt");
  ASSERT_TRUE(in.good());
  const auto cases = replay_cases(in);
  ASSERT_TRUE(cases.is_ok()) << cases.status().message();
  for (const std::string& rule : optimizer_rules())
    EXPECT_GE(cases.value().cases.count(rule), 1U) << rule;
  EXPECT_LT(cases.value().worst, 2e-5) << cases.value().worst_at;
}

TEST(RuleCases, ADifferenceIsFound) {
  std::istringstream in("case sgd lr=0.5\nweights 1 2\nstep 1 1 1\nwant 0.5 1.75\n");
  const auto cases = replay_cases(in);
  ASSERT_TRUE(cases.is_ok());
  EXPECT_NEAR(cases.value().worst, 0.25 / 2.75, 1e-9);
  EXPECT_EQ(cases.value().worst_at, "line 4 (sgd), weight 1: 1.5, not 1.75");
}

TEST(RuleCases, BadLinesAreNamed) {
  for (const char* text :
       {"weights 1\n", "case sgd\nwant\nstep 1 1\n", "case sgd beta1\n", "case sgd beta1=0.5\n",
        "case sgd\nweights 1\nstep 1 2 3\n", "case sgd\njump\n"}) {
    std::istringstream in(text);
    EXPECT_EQ(replay_cases(in).status().code(), Code::kInvalid) << text;
  }
}

}  // namespace
}  // namespace flux
