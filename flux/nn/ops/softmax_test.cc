#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(Softmax, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ(
      "", check_random_operators(30, [](Random& random) -> OperatorCase {
        const uint32_t length = between(random, 1, 6), dim = between(random, 1, 9);
        const bool positions = random.chance(0.5);
        std::vector<OperatorInput> inputs = {{length, dim}};
        if (random.chance(0.5)) inputs.push_back(mask_input(positions ? length : dim));
        return {"softmax", inputs, {{"over", std::string(positions ? "positions" : "features")}}};
      }));
}

TEST(Softmax, RefusesAMaskOfAnotherLength) {
  const std::string message = refusal({"softmax", {{2, 3}, {1, 4}}});
  EXPECT_NE(message.find("the mask must be [B,3]"), std::string::npos) << message;
}

}  // namespace
}  // namespace flux
