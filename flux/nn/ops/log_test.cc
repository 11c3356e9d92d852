#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(Log, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              OperatorInput x{between(random, 1, 5), between(random, 1, 9)};
              x.before = "exp";
              return {"log", {x}};
            }));
}

// Below epsilon the result stands still.
TEST(Log, OfNegativeNumbers) {
  EXPECT_EQ("", check_random_operators(10, [](Random& random) -> OperatorCase {
              return {"log", {{1, between(random, 1, 9)}}, {{"epsilon", 0.01}}};
            }));
}

}  // namespace
}  // namespace flux
