#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(AttentionPooling, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              const uint32_t length = between(random, 1, 7);
              std::vector<OperatorInput> inputs = {{length, 1}, {length, between(random, 1, 20)}};
              if (random.chance(0.6)) inputs.push_back(mask_input(length));
              const bool softmax = random.chance(0.5);
              return {"attention_pooling",
                      inputs,
                      {{"normalize", std::string(softmax ? "softmax" : "none")}}};
            }));
}

TEST(AttentionPooling, RefusesScoresOfAnotherLength) {
  const std::string message = refusal({"attention_pooling", {{1, 3}, {2, 4}}});
  EXPECT_NE(message.find("got x0[B,3], x1[B,2,4]"), std::string::npos) << message;
}

}  // namespace
}  // namespace flux
