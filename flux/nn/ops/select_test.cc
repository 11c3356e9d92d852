#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(Select, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              const uint32_t dim = between(random, 1, 9);
              const OperatorInput condition = mask_input(random.chance(0.3) ? 1 : dim);
              return {"select", {condition, {1, dim}, {1, random.chance(0.3) ? 1 : dim}}};
            }));
}

}  // namespace
}  // namespace flux
