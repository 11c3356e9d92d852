#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(Elu, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              return {"elu",
                      {{between(random, 1, 5), between(random, 1, 9)}},
                      {{"alpha", random.uniform() * 2}}};
            }));
}

}  // namespace
}  // namespace flux
