#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(LayerNorm, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              return {"layer_norm", {{between(random, 1, 4), between(random, 2, 20)}}};
            }));
}

TEST(LayerNorm, RefusesASingleFeature) {
  const std::string message = refusal({"layer_norm", {{1, 1}}});
  EXPECT_NE(message.find("needs two features or more, got x0[B,1]"), std::string::npos) << message;
}

}  // namespace
}  // namespace flux
