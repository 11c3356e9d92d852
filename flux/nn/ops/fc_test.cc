#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"
#include "flux/nn/reference.h"

namespace flux {
namespace {

NodeSpec node(const char* name, const char* op, std::vector<std::string> inputs,
              std::map<std::string, AttrValue> attrs = {}) {
  return {name, op, std::move(inputs), std::move(attrs), ""};
}

TEST(Fc, ForwardAndGradientOfEveryActivation) {
  for (const char* activation :
       {"none", "relu", "sigmoid", "tanh", "leaky_relu", "elu", "softplus"}) {
    for (const int64_t units : {1, 2, 16, 21}) {
      const AttrValue f = std::string(activation);
      const auto graph = must_build(
          {3, 2, {{"t", 4}}},
          {node("e", "embedding", {}, {{"table", std::string("t")}}),
           node("x", "concat", {"e", "dense"}),
           node("h", "fc", {"x"}, {{"units", units}, {"activation", f}}),
           node("i", "fc", {"h"}, {{"units", int64_t{5}}, {"activation", f}, {"bias", false}}),
           node("z", "fc", {"i"}, {{"units", int64_t{1}}}),
           node("l", "logistic_loss", {"z", "label"})});
      EXPECT_EQ("", check_net(graph, {})) << activation << units;
    }
  }
}

TEST(Fc, WithoutBiasHasOneParameter) {
  const auto graph =
      must_build({0, 3, {}}, {node("z", "fc", {"dense"}, {{"units", int64_t{1}}, {"bias", false}}),
                              node("l", "logistic_loss", {"z", "label"})});
  ASSERT_EQ(1U, graph->parameters().size());
  EXPECT_EQ("z.weight", graph->parameters()[0].name);
  EXPECT_EQ("", check_net(graph, {}));
}

TEST(Fc, PerPosition) {
  EXPECT_EQ("", check_random_operators(30, [](Random& random) -> OperatorCase {
              const char* activations[] = {"none", "sigmoid", "tanh", "elu", "softplus"};
              return {"fc",
                      {{between(random, 1, 6), between(random, 1, 20)}},
                      {{"units", int64_t{between(random, 1, 20)}},
                       {"activation", std::string(activations[random.below(5)])},
                       {"per_position", true}}};
            }));
}

}  // namespace
}  // namespace flux
