#include <cmath>

#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"
#include "flux/nn/reference.h"

namespace flux {
namespace {

NodeSpec node(const char* name, const char* op, std::vector<std::string> inputs,
              std::map<std::string, AttrValue> attrs = {}) {
  return {name, op, std::move(inputs), std::move(attrs), ""};
}

// Counters that are data, beside features that are trained.
TEST(Cvm, ForwardAndGradient) {
  for (const bool use_cvm : {true, false}) {
    const auto graph = must_build(
        {0, 6, {}},
        {node("data", "slice", {"dense"}, {{"begin", int64_t{0}}, {"end", int64_t{2}}}),
         node("counts", "square", {"data"}), node("e", "fc", {"dense"}, {{"units", int64_t{5}}}),
         node("x", "concat", {"counts", "e"}), node("y", "cvm", {"x"}, {{"use_cvm", use_cvm}}),
         node("z", "fc", {"y"}, {{"units", int64_t{1}}}),
         node("l", "logistic_loss", {"z", "label"})});
    EXPECT_EQ("", check_net(graph, {}));
  }
}

// Without the counters every position keeps the rest, whose gradient can be checked.
TEST(Cvm, OfSequencesWithoutCounters) {
  EXPECT_EQ(
      "", check_random_operators(20, [](Random& random) -> OperatorCase {
        return {"cvm", {{between(random, 1, 5), between(random, 3, 9)}}, {{"use_cvm", false}}};
      }));
}

TEST(Cvm, RefusesAPositionWithoutCounters) {
  const std::string message = refusal({"cvm", {{3, 1}}});
  EXPECT_NE(message.find("must begin with show and click, got x0[B,3,1]"), std::string::npos)
      << message;
}

}  // namespace
}  // namespace flux
