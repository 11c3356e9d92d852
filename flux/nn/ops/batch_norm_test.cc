#include <cmath>

#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"
#include "flux/nn/operator_run.h"
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

// Of two examples u is nearly +1 and -1, so mean and variance take back nearly all that comes: with
// x = mean +- d the rest is scale * epsilon / (d d + epsilon)^1.5 * (dy - mean of dy).
TEST(BatchNorm, TermsThatCancelLeaveNoRounding) {
  Random random(3);
  for (const float d : {0.01F, 0.05F, 0.3F}) {
    for (int i = 0; i < 50; ++i) {
      OperatorRun run;
      run.op = "batch_norm";
      run.attrs = {{"epsilon", 1e-3}};
      run.batch = 2;
      const float x = static_cast<float>(random.normal()), scale = static_cast<float>(i) - 25.0F;
      run.inputs = {{1, 1, {x + d, x - d}}};
      run.parameters = {scale, 0.5F, 1, 1, 1};
      run.output_gradient = {static_cast<float>(random.normal()), 2};
      const auto result = run_operator(run);
      ASSERT_TRUE(result.is_ok()) << result.status().message();
      const double half = (static_cast<double>(run.inputs[0].values[0]) -
                           static_cast<double>(run.inputs[0].values[1])) /
                          2;
      const double rest = static_cast<double>(run.output_gradient[0] - run.output_gradient[1]) / 2;
      const double epsilon = static_cast<double>(1e-3F);
      const double want = scale * epsilon / std::pow(half * half + epsilon, 1.5) * rest;
      const std::vector<float>& got = result.value().gradients[0];
      EXPECT_NEAR(got[0], want, 1e-6 * std::fabs(want) + 1e-9) << d << " " << i;
      EXPECT_NEAR(got[1], -want, 1e-6 * std::fabs(want) + 1e-9) << d << " " << i;
    }
  }
}

TEST(BatchNorm, SummariesTakeInTheBatch) {
  EXPECT_EQ("", check_summaries("batch_norm"));
}

TEST(BatchNorm, PredictsBySummaries) {
  EXPECT_NEAR(predicted_by_summaries("batch_norm", 5, 2, 9), 1.0, 1e-4);
}

}  // namespace
}  // namespace flux
