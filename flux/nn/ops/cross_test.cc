#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"
#include "flux/nn/reference.h"

namespace flux {
namespace {

TEST(Cross, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              const uint32_t n = between(random, 2, 40);
              const int64_t rank = random.chance(0.5) ? 0 : between(random, 1, n - 1);
              return {"cross", {{1, n}, {1, n}}, {{"rank", rank}}};
            }));
}

// The first layer of a cross network: x0 is also x.
TEST(Cross, OfOneInputTwice) {
  for (const int64_t rank : {0, 3}) {
    const std::string problem =
        check_net(must_build({0, 20, {}}, {{"e", "fc", {"dense"}, {{"units", int64_t{9}}}, ""},
                                           {"x", "concat", {"e", "dense"}, {}, ""},
                                           {"y", "cross", {"x", "x"}, {{"rank", rank}}, ""},
                                           {"z", "fc", {"y"}, {{"units", int64_t{1}}}, ""},
                                           {"l", "logistic_loss", {"z", "label"}, {}, ""}}),
                  {});
    EXPECT_EQ("", problem);
  }
}
TEST(Cross, RefusesDifferentWidths) {
  const std::string message = refusal({"cross", {{1, 3}, {1, 4}}});
  EXPECT_NE(message.find("got x0[B,3], x1[B,4]"), std::string::npos) << message;
}

}  // namespace
}  // namespace flux
