#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(Maximum, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(30, [](Random& random) -> OperatorCase {
              const uint32_t length = between(random, 1, 4), dim = between(random, 1, 7);
              const auto part = [&](uint32_t n) { return random.chance(0.3) ? 1 : n; };
              return {"maximum", {{length, dim}, {part(length), part(dim)}}};
            }));
}

TEST(Maximum, RefusesShapesThatDoNotFit) {
  const std::string message = refusal({"maximum", {{1, 3}, {1, 4}}});
  EXPECT_NE(message.find("got x0[B,3], x1[B,4]"), std::string::npos) << message;
}

}  // namespace
}  // namespace flux
