#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(Exp, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              return {"exp", {{between(random, 1, 5), between(random, 1, 9)}}};
            }));
}

}  // namespace
}  // namespace flux
