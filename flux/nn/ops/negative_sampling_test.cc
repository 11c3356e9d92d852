#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(NegativeSampling, ForwardAndGradientOfRandomCases) {
  EXPECT_EQ("", check_random_operators(30, [](Random& random) -> OperatorCase {
              std::vector<std::string> sources = {};
              if (random.chance(0.5)) sources.push_back("weight");
              return {"negative_sampling", {{1, 1}, {between(random, 1, 6), 1}}, {}, true, sources};
            }));
}

TEST(NegativeSampling, RefusesTwoScores) {
  const std::string message = refusal({"negative_sampling", {{1, 2}, {1, 3}}});
  EXPECT_NE(message.find("got x0[B,2], x1[B,3]"), std::string::npos) << message;
}

}  // namespace
}  // namespace flux
