#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(L2Normalize, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              return {"l2_normalize", {{between(random, 1, 4), between(random, 2, 20)}}};
            }));
}

}  // namespace
}  // namespace flux
