#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(Gather, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              const uint32_t length = between(random, 1, 4), dim = between(random, 1, 9);
              std::vector<std::string> columns;
              for (uint32_t i = between(random, 1, 6); i > 0; --i)
                columns.push_back(std::to_string(random.below(dim)));
              return {"gather", {{length, dim}}, {{"columns", columns}}};
            }));
}

TEST(Gather, RefusesAFeatureThatIsNotThere) {
  const std::string message =
      refusal({"gather", {{1, 3}}, {{"columns", std::vector<std::string>{"3"}}}});
  EXPECT_NE(message.find("integers from 0 to 2, got '3'; the input is x0[B,3]"), std::string::npos)
      << message;
}

}  // namespace
}  // namespace flux
