#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(Fm, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              return {"fm", {{between(random, 2, 9), between(random, 1, 20)}}};
            }));
}

TEST(Fm, RefusesAValueWithoutSlots) {
  const std::string message = refusal({"fm", {{1, 8}}});
  EXPECT_NE(message.find("must have one position per slot, [B,slots,dim], got x0[B,8]"),
            std::string::npos)
      << message;
}

}  // namespace
}  // namespace flux
