#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(Scale, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              return {"scale",
                      {{between(random, 1, 5), between(random, 1, 9)}},
                      {{"factor", random.normal()}, {"bias", random.normal()}}};
            }));
}

}  // namespace
}  // namespace flux
