#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(Dot, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              const uint32_t length = between(random, 1, 4), dim = between(random, 2, 20);
              const auto part = [&] { return random.chance(0.3) ? 1 : length; };
              return {"dot", {{part(), dim}, {part(), dim}}};
            }));
}

TEST(Dot, RefusesDifferentDims) {
  const std::string message = refusal({"dot", {{1, 3}, {1, 4}}});
  EXPECT_NE(message.find("got x0[B,3], x1[B,4]"), std::string::npos) << message;
}

}  // namespace
}  // namespace flux
