#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"
#include "flux/nn/summary_check.h"

namespace flux {
namespace {

TEST(DataNorm, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              OperatorCase test{"data_norm", {{between(random, 1, 4), between(random, 1, 9)}}};
              test.same_predict = true;
              test.fp32_only = true;
              return test;
            }));
}

TEST(DataNorm, SummariesTakeInTheBatch) {
  EXPECT_EQ("", check_summaries("data_norm", 1e-4));
}

}  // namespace
}  // namespace flux
