#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(Slice, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              const uint32_t length = between(random, 1, 5), dim = between(random, 1, 9);
              const bool positions = random.chance(0.5);
              const uint32_t n = positions ? length : dim, begin = between(random, 0, n - 1);
              const uint32_t end = between(random, begin + 1, n);
              return {"slice",
                      {{length, dim}},
                      {{"begin", int64_t{begin}},
                       {"end", int64_t{end}},
                       {"over", std::string(positions ? "positions" : "features")}}};
            }));
}

TEST(Slice, RefusesToReachBehindTheEnd) {
  const std::string message =
      refusal({"slice", {{2, 3}}, {{"begin", int64_t{1}}, {"end", int64_t{4}}}});
  EXPECT_NE(message.find("'end' at most 3, got 1 and 4; the input is x0[B,2,3]"), std::string::npos)
      << message;
}

}  // namespace
}  // namespace flux
