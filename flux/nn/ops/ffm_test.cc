#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(Ffm, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              const uint32_t slots = between(random, 2, 5);
              return {"ffm", {{slots, slots * between(random, 1, 5)}}};
            }));
}

TEST(Ffm, RefusesAValueWithoutSlots) {
  const std::string message = refusal({"ffm", {{1, 8}}});
  EXPECT_NE(message.find("must have one position per slot, [B,slots,dim], got x0[B,8]"),
            std::string::npos)
      << message;
}

TEST(Ffm, RefusesADimThatIsNoMultipleOfTheSlots) {
  const std::string message = refusal({"ffm", {{3, 4}}});
  EXPECT_NE(message.find("a multiple of 3"), std::string::npos) << message;
}

}  // namespace
}  // namespace flux
