#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"
#include "flux/nn/reference.h"

namespace flux {
namespace {

NodeSpec node(const char* name, const char* op, std::vector<std::string> inputs,
              std::map<std::string, AttrValue> attrs = {}) {
  return {name, op, std::move(inputs), std::move(attrs), ""};
}

TEST(Add, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(30, [](Random& random) -> OperatorCase {
              const uint32_t length = between(random, 1, 4), dim = between(random, 1, 7);
              const auto part = [&](uint32_t n) { return random.chance(0.3) ? 1 : n; };
              std::vector<OperatorInput> inputs = {{length, dim}};
              const uint32_t more = between(random, 1, 4);
              for (uint32_t i = 0; i < more; ++i) inputs.push_back({part(length), part(dim)});
              return {"add", inputs};
            }));
}

TEST(Add, RefusesShapesThatDoNotFit) {
  const std::string message = refusal({"add", {{1, 3}, {1, 4}}});
  EXPECT_NE(message.find("got x0[B,3], x1[B,4]"), std::string::npos) << message;
}

TEST(Add, OfTheSameInputTwice) {
  const AttrValue table = std::string("t"), sum = std::string("sum");
  const auto graph = must_build(
      {3, 4, {{"t", 4}}},
      {node("e", "embedding", {}, {{"table", table}, {"combine", sum}}),
       node("h", "fc", {"dense"}, {{"units", int64_t{4}}}),
       node("y", "add", {"e", "h", "dense", "e"}), node("z", "fc", {"y"}, {{"units", int64_t{1}}}),
       node("l", "logistic_loss", {"z", "label"})});
  EXPECT_EQ("", check_net(graph, {}));
}

}  // namespace
}  // namespace flux
