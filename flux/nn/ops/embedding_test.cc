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

ModelInputs many_keys(uint32_t dim) {
  ModelInputs inputs{3, 0, {{"t", dim}}};
  inputs.slot_names = {"user", "item", "history"};
  inputs.many_keys = true;
  return inputs;
}

TEST(Embedding, AnyNumberOfKeysIsPooled) {
  for (const char* pool : {"sum", "mean", "max", "first"}) {
    for (const char* combine : {"concat", "sum"}) {
      const std::map<std::string, AttrValue> attrs = {{"table", std::string("t")},
                                                      {"pool", std::string(pool)},
                                                      {"combine", std::string(combine)}};
      auto some = attrs;
      some["slots"] = std::vector<std::string>{"history", "user"};
      const auto graph = must_build(
          many_keys(5),
          {node("e", "embedding", {}, attrs), node("f", "embedding", {}, some),
           node("x", "concat", {"e", "f"}), node("z", "fc", {"x"}, {{"units", int64_t{1}}}),
           node("l", "logistic_loss", {"z", "label"})});
      CheckOptions options;
      options.row_count = 9;
      EXPECT_EQ("", check_net(graph, options)) << pool << combine;
    }
  }
}

TEST(Embedding, RowsAreMultipliedByTheValuesOfTheirKeys) {
  for (const bool many : {true, false}) {
    for (const char* pool : {"sum", "mean", "max", "first"}) {
      for (const char* combine : {"concat", "sum"}) {
        ModelInputs inputs = many_keys(5);
        inputs.many_keys = many;
        inputs.values = true;
        const auto graph = must_build(inputs, {node("e", "embedding", {},
                                                    {{"table", std::string("t")},
                                                     {"pool", std::string(pool)},
                                                     {"combine", std::string(combine)}}),
                                               node("z", "fc", {"e"}, {{"units", int64_t{1}}}),
                                               node("l", "logistic_loss", {"z", "label"})});
        CheckOptions options;
        options.row_count = 9;
        EXPECT_EQ("", check_net(graph, options)) << pool << combine << many;
      }
    }
  }
}

TEST(Embedding, ATableOfSomeSlotsIsReadForThoseAlone) {
  ModelInputs inputs = many_keys(5);
  inputs.many_keys = false;
  inputs.tables["wide"] = 1;
  inputs.table_slots["t"] = {"history", "user"};
  const auto graph = must_build(
      inputs, {node("e", "embedding", {}, {{"table", std::string("t")}}),
               node("w", "embedding", {},
                    {{"table", std::string("wide")}, {"combine", std::string("sum")}}),
               node("x", "concat", {"e", "w"}), node("z", "fc", {"x"}, {{"units", int64_t{1}}}),
               node("l", "logistic_loss", {"z", "label"})});
  EXPECT_NE(std::string::npos, graph->to_text().find("[B,2,5]")) << graph->to_text();
  EXPECT_EQ("", check_net(graph, {}));
  GraphBuilder builder(inputs);
  const Status status = builder.add(
      node("e", "embedding", {},
           {{"table", std::string("t")}, {"slots", std::vector<std::string>{"user", "item"}}}));
  EXPECT_NE(std::string::npos, status.message().find("table 't' has no rows of slot 'item'; its "
                                                     "slots: history, user"))
      << status.message();
}

TEST(Embedding, ASequenceIsCutAndFilledUp) {
  for (const char* keep : {"first", "last"}) {
    ModelInputs inputs = many_keys(3);
    inputs.values = std::string(keep) == "last";
    const auto graph = must_build(
        inputs,
        {node("e", "embedding", {},
              {{"table", std::string("t")},
               {"slots", std::vector<std::string>{"history"}},
               {"combine", std::string("sequence")},
               {"length", int64_t{3}},
               {"keep", std::string(keep)}}),
         node("m", "sequence_mask", {}, {{"slot", std::string("history")}, {"length", int64_t{3}}}),
         node("x", "concat", {"e", "m"}), node("z", "fc", {"x"}, {{"units", int64_t{1}}}),
         node("l", "logistic_loss", {"z", "label"})});
    EXPECT_EQ("", check_net(graph, {})) << keep;
  }
}

TEST(Embedding, ASlotThatTheDataLacksIsNamed) {
  GraphBuilder builder(many_keys(3));
  const Status status =
      builder.add(node("e", "embedding", {},
                       {{"table", std::string("t")}, {"slots", std::vector<std::string>{"usr"}}}));
  EXPECT_NE(std::string::npos, status.message().find("no slot 'usr', did you mean 'user'?"))
      << status.message();
}

}  // namespace
}  // namespace flux
