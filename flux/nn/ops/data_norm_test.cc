#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"
#include "flux/nn/reference.h"

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

// One batch of five through the operator alone: what it pushes for its summaries.
TEST(DataNorm, SummariesTakeInTheBatch) {
  const auto graph = must_build({0, 3, {}}, {{"y", "data_norm", {"dense"}, {}, ""},
                                             {"z", "fc", {"y"}, {{"units", int64_t{1}}}, ""},
                                             {"l", "logistic_loss", {"z", "label"}, {}, ""}});
  const SampleBatch sample = make_sample(*graph, 5, 1, 3);
  auto net = Net::compile(graph, {}).value();
  const std::vector<float> flat = graph->initial_parameters(1);
  net->set_parameters(flat.data());
  std::vector<float> pushed(flat.size());
  NetGradients gradients{pushed.data(), {}};
  net->train(sample.view(), &gradients, nullptr);
  const float* summaries = pushed.data() + graph->parameters()[0].offset;
  for (size_t c = 0; c < 3; ++c) {
    float sum = 0, squares = 0;
    for (size_t b = 0; b < 5; ++b) {
      const float x = sample.dense[b * 3 + c];
      sum += x;
      squares += x * x + 1e-4F;
    }
    EXPECT_EQ(summaries[c], 5);
    EXPECT_NEAR(summaries[3 + c], sum, 1e-5);
    EXPECT_NEAR(summaries[6 + c], squares, 1e-5);
  }
  EXPECT_EQ(graph->parameters()[0].update, UpdateKind::kSummary);
}

}  // namespace
}  // namespace flux
