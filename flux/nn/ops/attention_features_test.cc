#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(AttentionFeatures, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              const uint32_t dim = between(random, 1, 9);
              return {"attention_features", {{1, dim}, {between(random, 1, 6), dim}}};
            }));
}

TEST(AttentionFeatures, RefusesAQueryOfAnotherWidth) {
  const std::string message = refusal({"attention_features", {{1, 3}, {2, 4}}});
  EXPECT_NE(message.find("got x0[B,3], x1[B,2,4]"), std::string::npos) << message;
}

}  // namespace
}  // namespace flux
