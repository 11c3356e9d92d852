#include <gtest/gtest.h>

#include "flux/nn/reference.h"

namespace flux {
namespace {

NodeSpec node(const char* name, const char* op, std::vector<std::string> inputs,
              std::map<std::string, AttrValue> attrs = {}) {
  return {name, op, std::move(inputs), std::move(attrs), ""};
}

std::shared_ptr<const Graph> graph_of(uint32_t dim, const char* combine) {
  return must_build(
      {5, 0, {{"t", dim}}},
      {node("e", "embedding", {}, {{"table", std::string("t")}, {"combine", std::string(combine)}}),
       node("z", "fc", {"e"}, {{"units", int64_t{1}}}),
       node("l", "logistic_loss", {"z", "label"})});
}

TEST(Embedding, ForwardAndGradientOfEveryDim) {
  for (const uint32_t dim : {1U, 2U, 7U, 8U, 10U, 15U, 16U, 17U, 33U, 300U}) {
    CheckOptions options;
    options.row_count = 9;  // rows repeat within a batch, so that gradients must add up
    EXPECT_EQ("", check_net(graph_of(dim, "concat"), options)) << dim;
    EXPECT_EQ("", check_net(graph_of(dim, "sum"), options)) << dim;
  }
}

}  // namespace
}  // namespace flux
