#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(Clip, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              return {"clip",
                      {{between(random, 1, 5), between(random, 1, 9)}},
                      {{"min", -0.2 - random.uniform()}, {"max", 0.2 + random.uniform()}}};
            }));
}

TEST(Clip, RefusesAnEmptyRange) {
  const std::string message = refusal({"clip", {{1, 3}}, {{"min", 1.0}, {"max", 1.0}}});
  EXPECT_NE(message.find("'min' must be below 'max', got 1 and 1 for x0[B,3]"), std::string::npos)
      << message;
}

}  // namespace
}  // namespace flux
