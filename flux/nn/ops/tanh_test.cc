#include <gtest/gtest.h>

#include "flux/nn/reference.h"

namespace flux {
namespace {

NodeSpec node(const char* name, const char* op, std::vector<std::string> inputs,
              std::map<std::string, AttrValue> attrs = {}) {
  return {name, op, std::move(inputs), std::move(attrs), ""};
}

TEST(Tanh, ForwardAndGradient) {
  const auto graph =
      must_build({3, 2, {{"t", 4}}},
                 {node("e", "embedding", {}, {{"table", std::string("t")}}),
                  node("y", "tanh", {"e"}), node("z", "fc", {"y"}, {{"units", int64_t{1}}}),
                  node("l", "logistic_loss", {"z", "label"})});
  EXPECT_EQ("", check_net(graph, {}));
}

}  // namespace
}  // namespace flux
