#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(Experts, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              const uint32_t experts = between(random, 1, 4);
              const bool own = random.chance(0.5);
              const OperatorInput x{own ? experts : between(random, 1, 3), between(random, 1, 9)};
              return {"experts",
                      {x},
                      {{"experts", int64_t{experts}},
                       {"units", int64_t{between(random, 1, 20)}},
                       {"activation", std::string("none")},
                       {"own_position", own}}};
            }));
}

TEST(Experts, RefusesAnotherNumberOfPositions) {
  const std::string message =
      refusal({"experts",
               {{2, 4}},
               {{"experts", int64_t{3}}, {"units", int64_t{2}}, {"own_position", true}}});
  EXPECT_NE(message.find("each of the 3 experts, got x0[B,2,4]"), std::string::npos) << message;
}

}  // namespace
}  // namespace flux
