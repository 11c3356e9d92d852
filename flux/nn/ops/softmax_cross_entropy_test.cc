#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(SoftmaxCrossEntropy, ForwardAndGradientOfRandomCases) {
  EXPECT_EQ("", check_random_operators(30, [](Random& random) -> OperatorCase {
              std::vector<std::string> sources = {"label"};
              if (random.chance(0.5)) sources.push_back("weight");
              return {"softmax_cross_entropy", {{1, between(random, 2, 9)}}, {}, true, sources};
            }));
}

TEST(SoftmaxCrossEntropy, RefusesASingleClass) {
  const std::string message = refusal({"softmax_cross_entropy", {{1, 1}}, {}, true, {"label"}});
  EXPECT_NE(message.find("two or more classes, got x0[B,1], label[B,1]"), std::string::npos)
      << message;
}

}  // namespace
}  // namespace flux
