#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(Cin, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ(
      "", check_random_operators(20, [](Random& random) -> OperatorCase {
        const uint32_t dim = between(random, 1, 9);
        const OperatorInput first{between(random, 1, 5), dim}, last{between(random, 1, 6), dim};
        return {"cin", {first, last}, {{"units", int64_t{between(random, 1, 20)}}}};
      }));
}

TEST(Cin, RefusesDifferentDims) {
  const std::string message = refusal({"cin", {{2, 3}, {2, 4}}, {{"units", int64_t{2}}}});
  EXPECT_NE(message.find("got x0[B,2,3], x1[B,2,4]"), std::string::npos) << message;
}

}  // namespace
}  // namespace flux
