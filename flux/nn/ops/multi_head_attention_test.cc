#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(MultiHeadAttention, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              const uint32_t heads = between(random, 1, 3), keys = between(random, 1, 6);
              const uint32_t dim = heads * between(random, 1, 6),
                             out = heads * between(random, 1, 6);
              std::vector<OperatorInput> inputs = {
                  {between(random, 1, 5), dim}, {keys, dim}, {keys, out}};
              if (random.chance(0.5)) inputs.push_back(mask_input(keys));
              return {"multi_head_attention", inputs, {{"heads", int64_t{heads}}}};
            }));
}

TEST(MultiHeadAttention, RefusesFeaturesThatHeadsDoNotDivide) {
  const std::string message =
      refusal({"multi_head_attention", {{2, 3}, {2, 3}, {2, 3}}, {{"heads", int64_t{2}}}});
  EXPECT_NE(message.find("a multiple of 'heads: 2', got x0[B,2,3]"), std::string::npos) << message;
}

}  // namespace
}  // namespace flux
