#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(Div, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(30, [](Random& random) -> OperatorCase {
              const uint32_t length = between(random, 1, 4), dim = between(random, 1, 7);
              const auto part = [&](uint32_t n) { return random.chance(0.3) ? 1 : n; };
              OperatorInput divisor{part(length), part(dim)};
              divisor.before = "exp";
              return {"div", {{length, dim}, divisor}};
            }));
}

// A divisor near zero counts as epsilon and gets no gradient.
TEST(Div, BySmallNumbers) {
  EXPECT_EQ("", check_random_operators(10, [](Random& random) -> OperatorCase {
              const uint32_t dim = between(random, 1, 9);
              return {"div", {{1, dim}, {1, dim}}, {{"epsilon", 1.0}}, true};
            }));
}

}  // namespace
}  // namespace flux
