#include <gtest/gtest.h>

#include "flux/nn/reference.h"

namespace flux {
namespace {

NodeSpec node(const char* name, const char* op, std::vector<std::string> inputs,
              std::map<std::string, AttrValue> attrs = {}) {
  return {name, op, std::move(inputs), std::move(attrs), ""};
}

TEST(LogisticLoss, ForwardAndGradient) {
  const auto graph = must_build({0, 6, {}}, {node("z", "fc", {"dense"}, {{"units", int64_t{1}}}),
                                             node("l", "logistic_loss", {"z", "label"})});
  CheckOptions options;
  options.batch = 100;
  EXPECT_EQ("", check_net(graph, options));
}

TEST(LogisticLoss, SeveralHeadsWithWeightsOfLossesAndExamples) {
  ModelInputs inputs{0, 3, {}};
  inputs.labels = {"click", "buy"};
  inputs.weights = true;
  const auto graph = must_build(
      inputs, {node("h", "fc", {"dense"}, {{"units", int64_t{4}}}),
               node("a", "fc", {"h"}, {{"units", int64_t{1}}}),
               node("b", "fc", {"h"}, {{"units", int64_t{1}}}),
               node("la", "logistic_loss", {"a", "click", "weight"}, {{"loss_weight", 0.5}}),
               node("lb", "logistic_loss", {"b", "buy"}, {{"loss_weight", 2.0}})});
  ASSERT_EQ(2U, graph->heads().size());
  EXPECT_EQ(1, graph->heads()[1].label);
  EXPECT_EQ("", check_net(graph, {}));
}

}  // namespace
}  // namespace flux
