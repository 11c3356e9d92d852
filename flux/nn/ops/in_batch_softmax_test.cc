#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(InBatchSoftmax, ForwardAndGradientOfRandomCases) {
  EXPECT_EQ("", check_random_operators(30, [](Random& random) -> OperatorCase {
              const uint32_t dim = between(random, 1, 20);
              std::vector<std::string> sources = {};
              if (random.chance(0.5)) sources.push_back("weight");
              return {"in_batch_softmax",
                      {{1, dim}, {1, dim}},
                      {{"temperature", 0.2 + random.uniform()}},
                      true,
                      sources};
            }));
}

TEST(InBatchSoftmax, RefusesTowersOfDifferentWidth) {
  const std::string message = refusal({"in_batch_softmax", {{1, 2}, {1, 3}}});
  EXPECT_NE(message.find("got x0[B,2], x1[B,3]"), std::string::npos) << message;
}

}  // namespace
}  // namespace flux
