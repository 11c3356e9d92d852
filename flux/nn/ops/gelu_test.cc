#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(Gelu, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              return {"gelu", {{between(random, 1, 5), between(random, 1, 9)}}};
            }));
}

}  // namespace
}  // namespace flux
