#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(BiInteraction, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              return {"bi_interaction", {{between(random, 2, 9), between(random, 1, 20)}}};
            }));
}

TEST(BiInteraction, RefusesAValueWithoutSlots) {
  const std::string message = refusal({"bi_interaction", {{1, 8}}});
  EXPECT_NE(message.find("must have one position per slot, [B,slots,dim], got x0[B,8]"),
            std::string::npos)
      << message;
}

}  // namespace
}  // namespace flux
