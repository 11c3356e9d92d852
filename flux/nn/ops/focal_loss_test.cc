#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"

namespace flux {
namespace {

TEST(FocalLoss, ForwardAndGradientOfRandomCases) {
  EXPECT_EQ("", check_random_operators(30, [](Random& random) -> OperatorCase {
              std::vector<std::string> sources = {"label"};
              if (random.chance(0.5)) sources.push_back("weight");
              return {"focal_loss",
                      {{1, 1}},
                      {{"gamma", random.uniform() * 3}, {"alpha", random.uniform()}},
                      true,
                      sources};
            }));
}

TEST(FocalLoss, RefusesAWidePrediction) {
  const std::string message = refusal({"focal_loss", {{1, 3}}, {}, true, {"label"}});
  EXPECT_NE(message.find("what is predicted must be [B,1], got x0[B,3], label[B,1]"),
            std::string::npos)
      << message;
}

}  // namespace
}  // namespace flux
