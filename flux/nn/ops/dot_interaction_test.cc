#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(DotInteraction, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              const uint32_t dim = between(random, 1, 20);
              std::vector<OperatorInput> inputs = {{between(random, 2, 6), dim}};
              if (random.chance(0.5)) inputs.push_back({between(random, 1, 3), dim});
              return {"dot_interaction", inputs, {{"self", random.chance(0.5)}}};
            }));
}

TEST(DotInteraction, RefusesDifferentDims) {
  const std::string message = refusal({"dot_interaction", {{2, 3}, {1, 4}}});
  EXPECT_NE(message.find("got x0[B,2,3], x1[B,4]"), std::string::npos) << message;
}

}  // namespace
}  // namespace flux
