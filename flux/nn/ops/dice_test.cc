#include <cmath>

#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"
#include "flux/nn/reference.h"

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

// One batch of five through the operator alone: what it pushes for its summaries.
TEST(Dice, SummariesTakeInTheBatch) {
  const auto graph = must_build({0, 3, {}}, {{"y", "dice", {"dense"}, {}, ""},
                                             {"z", "fc", {"y"}, {{"units", int64_t{1}}}, ""},
                                             {"l", "logistic_loss", {"z", "label"}, {}, ""}});
  const SampleBatch sample = make_sample(*graph, 5, 1, 3);
  auto net = Net::compile(graph, {}).value();
  const std::vector<float> flat = graph->initial_parameters(1);
  net->set_parameters(flat.data());
  std::vector<float> pushed(flat.size());
  NetGradients gradients{pushed.data(), {}};
  net->train(sample.view(), &gradients, nullptr);
  const float* summaries = pushed.data() + graph->parameters()[1].offset;
  for (size_t c = 0; c < 3; ++c) {
    float sum = 0, squares = 0;
    for (size_t b = 0; b < 5; ++b) {
      const float x = sample.dense[b * 3 + c];
      sum += x;
      squares += x * x;
    }
    EXPECT_EQ(summaries[c], 5);
    EXPECT_NEAR(summaries[3 + c], sum, 1e-5);
    EXPECT_NEAR(summaries[6 + c], squares, 1e-5);
  }
  EXPECT_EQ(graph->parameters()[1].update, UpdateKind::kSummary);
}

// With summaries of mean 2 and variance 9, a batch of one is normalised by those.
TEST(Dice, PredictsBySummaries) {
  const auto graph = must_build(
      {0, 1, {}}, {{"y", "dice", {"dense"}, {}, ""}, {"l", "mse_loss", {"y", "label"}, {}, ""}});
  std::vector<float> flat = graph->initial_parameters(1);
  float* summaries = flat.data() + graph->parameters()[1].offset;
  summaries[0] = 10;
  summaries[1] = 20;
  summaries[2] = 10 * (9 + 4);
  auto net = Net::compile(graph, {}).value();
  net->set_parameters(flat.data());
  SampleBatch sample = make_sample(*graph, 1, 1, 3);
  sample.dense[0] = 5;
  float prediction = 0;
  net->predict(sample.view(), &prediction);
  EXPECT_NEAR(prediction, 5 * (1 / (1 + std::exp(-1.0)) * 0.75 + 0.25), 1e-4);
}

}  // namespace
}  // namespace flux
