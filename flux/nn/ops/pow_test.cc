#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(Pow, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ(
      "", check_random_operators(20, [](Random& random) -> OperatorCase {
        const double exponent = static_cast<double>(between(random, 0, 4));
        return {"pow", {{between(random, 1, 5), between(random, 1, 9)}}, {{"exponent", exponent}}};
      }));
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              OperatorInput x{1, between(random, 1, 9)};
              x.before = "exp";
              return {"pow", {x}, {{"exponent", random.normal()}}};
            }));
}

}  // namespace
}  // namespace flux
