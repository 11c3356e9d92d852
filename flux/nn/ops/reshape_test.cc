#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(Reshape, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              const uint32_t length = between(random, 1, 5), dim = between(random, 1, 9);
              return {"reshape", {{dim, length}}, {{"length", int64_t{length}}}};
            }));
}

TEST(Reshape, RefusesALengthThatDoesNotDivide) {
  const std::string message = refusal({"reshape", {{1, 7}}, {{"length", int64_t{2}}}});
  EXPECT_NE(message.find("7 numbers cannot be split into 'length: 2' positions: x0[B,7]"),
            std::string::npos)
      << message;
}

}  // namespace
}  // namespace flux
