#include <gtest/gtest.h>

#include "flux/nn/reference.h"

namespace flux {
namespace {

std::shared_ptr<const Graph> graph_of(double rate) {
  return must_build({0, 8, {}}, {{"x", "fc", {"dense"}, {{"units", int64_t{37}}}, ""},
                                 {"y", "dropout", {"x"}, {{"rate", rate}}, ""},
                                 {"z", "fc", {"y"}, {{"units", int64_t{1}}}, ""},
                                 {"l", "logistic_loss", {"z", "label"}, {}, ""}});
}

TEST(Dropout, ForwardAndGradientInTraining) {
  for (const double rate : {0.0, 0.2, 0.5, 0.9}) {
    CheckOptions options;
    options.same_predict = rate == 0;
    EXPECT_EQ("", check_net(graph_of(rate), options)) << rate;
  }
}

// The output layer's gradient of a dropped feature is 0 in every example it was dropped from.
double share_dropped(double rate, uint64_t noise) {
  const auto graph = graph_of(rate);
  auto net = Net::compile(graph, {}).value();
  const std::vector<float> flat = graph->initial_parameters(1);
  net->set_parameters(flat.data());
  std::vector<float> gradient(flat.size());
  int dropped = 0;
  for (int i = 0; i < 200; ++i) {
    SampleBatch sample = make_sample(*graph, 1, 1, static_cast<uint64_t>(i));
    sample.noise = noise + static_cast<uint64_t>(i);
    NetGradients gradients{gradient.data(), {}};
    net->train(sample.view(), &gradients, nullptr);
    const Parameter& weight = graph->parameters()[2];
    for (size_t k = 0; k < weight.size; ++k) dropped += gradient[weight.offset + k] == 0 ? 1 : 0;
  }
  return dropped / (200.0 * 37);
}

TEST(Dropout, DropsTheGivenShareByTheNoiseAlone) {
  EXPECT_NEAR(share_dropped(0.3, 1), 0.3, 0.02);
  EXPECT_NEAR(share_dropped(0.8, 5000), 0.8, 0.02);
  EXPECT_EQ(share_dropped(0.3, 1), share_dropped(0.3, 1));
  EXPECT_NE(share_dropped(0.3, 1), share_dropped(0.3, 9000));
}

TEST(Dropout, PredictionIsNotTouched) {
  const SampleBatch sample = make_sample(*graph_of(0.5), 5, 1, 3);
  std::vector<std::vector<float>> predictions(2, std::vector<float>(5));
  for (const int i : {0, 1}) {
    const auto graph = graph_of(i == 0 ? 0.5 : 0.0);
    auto net = Net::compile(graph, {}).value();
    net->set_parameters(graph->initial_parameters(1).data());
    net->predict(sample.view(), predictions[static_cast<size_t>(i)].data());
  }
  EXPECT_EQ(predictions[0], predictions[1]);
}

}  // namespace
}  // namespace flux
