#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

using From = OperatorInput::From;

TEST(SampledSoftmax, ForwardAndGradientOfRandomCases) {
  EXPECT_EQ(
      "", check_random_operators(30, [](Random& random) -> OperatorCase {
        const uint32_t drawn = between(random, 1, 6);
        OperatorCase test{"sampled_softmax", {{1, 1}, {drawn, 1}}, {}, true};
        if (random.chance(0.6))
          test.inputs.push_back({1, drawn + 1, random.chance(0.5) ? From::kData : From::kTrained});
        if (random.chance(0.5)) test.sources.emplace_back("weight");
        return test;
      }));
}

TEST(SampledSoftmax, RefusesTwoScores) {
  const std::string message = refusal({"sampled_softmax", {{1, 2}, {1, 3}}});
  EXPECT_NE(message.find("the true item's score [B,1]"), std::string::npos) << message;
  EXPECT_NE(message.find("got x0[B,2], x1[B,3]"), std::string::npos) << message;
}

TEST(SampledSoftmax, RefusesChancesWithoutTheTrueItem) {
  const std::string message = refusal({"sampled_softmax", {{1, 1}, {1, 3}, {1, 3}}});
  EXPECT_NE(message.find("the third input must be [B,4]"), std::string::npos) << message;
  EXPECT_NE(message.find("got x0[B,1], x1[B,3], x2[B,3]"), std::string::npos) << message;
}

// With one drawn item a third input of one number is the weight, not chances; it must be of the
// data.
TEST(SampledSoftmax, RefusesAWeightThatIsTrained) {
  const std::string message = refusal({"sampled_softmax", {{1, 1}, {1, 1}, {1, 1}}});
  EXPECT_NE(message.find("the weight must be [B,1]"), std::string::npos) << message;
}

}  // namespace
}  // namespace flux
