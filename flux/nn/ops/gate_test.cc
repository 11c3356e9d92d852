#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(Gate, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              const uint32_t dim = between(random, 1, 20), a = between(random, 1, 4),
                             b = between(random, 0, 3);
              std::vector<OperatorInput> inputs = {{1, a + b}, {a, dim}};
              if (b > 0) inputs.push_back({b, dim});
              const bool softmax = random.chance(0.7);
              return {"gate", inputs, {{"normalize", std::string(softmax ? "softmax" : "none")}}};
            }));
}

TEST(Gate, RefusesAnotherNumberOfLogits) {
  const std::string message = refusal({"gate", {{1, 3}, {2, 4}, {2, 4}}});
  EXPECT_NE(message.find("one logit for each of the 4 experts, got x0[B,3], x1[B,2,4], x2[B,2,4]"),
            std::string::npos)
      << message;
}

}  // namespace
}  // namespace flux
