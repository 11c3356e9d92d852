#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(Matmul, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              const uint32_t t = between(random, 1, 5), s = between(random, 1, 5),
                             d = between(random, 1, 20);
              const bool transposed = random.chance(0.5);
              const OperatorInput b = transposed ? OperatorInput{s, d} : OperatorInput{d, s};
              return {"matmul", {{t, d}, b}, {{"transpose_b", transposed}}};
            }));
}

TEST(Matmul, RefusesShapesThatDoNotFit) {
  const std::string message = refusal({"matmul", {{2, 3}, {2, 4}}});
  EXPECT_NE(message.find("inputs must be [B,T,d] and [B,S,d], got x0[B,2,3], x1[B,2,4]"),
            std::string::npos)
      << message;
}

}  // namespace
}  // namespace flux
