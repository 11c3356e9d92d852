#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(LogSoftmax, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              const bool positions = random.chance(0.5);
              return {"log_softmax",
                      {{between(random, 1, 6), between(random, 1, 9)}},
                      {{"over", std::string(positions ? "positions" : "features")}}};
            }));
}

}  // namespace
}  // namespace flux
