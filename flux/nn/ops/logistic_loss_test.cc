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

}  // namespace
}  // namespace flux
