#include <cmath>

#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"
#include "flux/nn/summary_check.h"

namespace flux {
namespace {

TEST(Dice, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              OperatorCase test{"dice", {{between(random, 1, 4), between(random, 1, 9)}}};
              test.same_predict = false;
              test.fp32_only = true;
              test.attrs = {{"epsilon", 0.01}};
              return test;
            }));
}

TEST(Dice, SummariesTakeInTheBatch) {
  EXPECT_EQ("", check_summaries("dice"));
}

TEST(Dice, PredictsBySummaries) {
  EXPECT_NEAR(predicted_by_summaries("dice", 5, 2, 9), 5 * (1 / (1 + std::exp(-1.0)) * 0.75 + 0.25),
              1e-4);
}

}  // namespace
}  // namespace flux
