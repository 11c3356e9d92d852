#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"
#include "flux/nn/summary_check.h"

namespace flux {
namespace {

TEST(BatchNorm, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              OperatorCase test{"batch_norm", {{between(random, 1, 4), between(random, 1, 9)}}};
              test.same_predict = false;
              test.fp32_only = true;
              test.attrs = {{"epsilon", 0.01}};
              return test;
            }));
}

TEST(BatchNorm, SummariesTakeInTheBatch) {
  EXPECT_EQ("", check_summaries("batch_norm"));
}

TEST(BatchNorm, PredictsBySummaries) {
  EXPECT_NEAR(predicted_by_summaries("batch_norm", 5, 2, 9), 1.0, 1e-4);
}

}  // namespace
}  // namespace flux
