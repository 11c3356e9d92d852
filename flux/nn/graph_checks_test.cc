#include "flux/nn/graph_checks.h"

#include <gtest/gtest.h>

#include "flux/base/text.h"

namespace flux {
namespace {

using Attrs = std::map<std::string, AttrValue>;

ModelInputs model() {
  ModelInputs inputs{3, 2, {{"emb", 4}}, {"user", "item", "history"}};
  inputs.many_keys = true;
  inputs.labels = {"click", "buy"};
  return inputs;
}

NodeSpec node(const char* name, const char* op, std::vector<std::string> inputs, Attrs attrs = {}) {
  return {name, op, std::move(inputs), std::move(attrs), "job.yaml:12:5"};
}
NodeSpec rows(const char* name, const char* slot) {
  return node(name, "embedding", {},
              {{"table", std::string("emb")}, {"slots", std::vector<std::string>{slot}}});
}
NodeSpec sequence(const char* name, const char* slot) {
  NodeSpec spec = rows(name, slot);
  spec.attrs["combine"] = std::string("sequence");
  spec.attrs["length"] = int64_t{5};
  return spec;
}
NodeSpec mask(const char* slot) {
  return node("m", "sequence_mask", {}, {{"slot", std::string(slot)}, {"length", int64_t{5}}});
}
NodeSpec fc(const char* name, const char* input, int64_t units = 1) {
  return node(name, "fc", {input}, {{"units", units}});
}

struct Found {
  std::string refusal, warnings;
};
Found look_at(const std::vector<NodeSpec>& nodes) {
  GraphBuilder builder(model());
  for (const NodeSpec& spec : nodes) {
    const Status status = builder.add(spec);
    if (!status.is_ok()) return {status.message(), ""};
  }
  const auto graph = builder.finish();
  if (!graph.is_ok()) return {graph.status().message(), ""};
  return {check_graph(*graph.value()).message(), join(graph_warnings(*graph.value()), "\n")};
}
std::string refusal(const std::vector<NodeSpec>& nodes) {
  return look_at(nodes).refusal;
}

const NodeSpec kUser = rows("u", "user"), kItem = rows("i", "item"), kLogit = fc("z", "u");
const NodeSpec kLoss = node("loss", "logistic_loss", {"z", "click"});
const std::string kAt = "job.yaml:12:5: node ";

TEST(GraphChecks, AModelThatLearnsIsLeftAlone) {
  const Found found = look_at({kUser, kLogit, kLoss});
  EXPECT_EQ("", found.refusal);
  EXPECT_EQ("", found.warnings);
}

TEST(GraphChecks, ALossHasNoOutput) {
  EXPECT_EQ(kAt + "'y' (fc): 'loss' is a loss, which has no output; name what it is of",
            refusal({kUser, kLogit, kLoss, fc("y", "loss")}));
}

TEST(GraphChecks, ALabelIsNoFeature) {
  const std::string rest =
      "is a label, which is not known when predicting; only a loss takes it, after what is "
      "predicted";
  EXPECT_EQ(kAt + "'x' (concat): 'click' " + rest,
            refusal({kUser, node("x", "concat", {"u", "click"}), fc("z", "x"), kLoss}));
  EXPECT_EQ(kAt + "'big' (greater): 'buy' " + rest,
            refusal({kUser, node("big", "greater", {"buy"}), node("x", "concat", {"u", "big"}),
                     fc("z", "x"), kLoss}));
  EXPECT_EQ(kAt + "'l' (bpr_loss): 'click' " + rest,
            refusal({kUser, kLogit, node("l", "bpr_loss", {"z", "click"})}));
}

TEST(GraphChecks, AWeightMadeOfALabelIsWarnedAbout) {
  const std::string text =
      "(logistic_loss): the weight of an example is made of its label 'buy', so that what is "
      "predicted holds only for examples as they are weighted";
  const Found direct = look_at({kUser, kLogit, node("l", "logistic_loss", {"z", "click", "buy"})});
  EXPECT_EQ("", direct.refusal);
  EXPECT_EQ(kAt + "'l' " + text, direct.warnings);
  const Found made = look_at({kUser, kLogit, node("w", "scale", {"buy"}),
                              node("l", "logistic_loss", {"z", "click", "w"})});
  EXPECT_EQ("", made.refusal);
  EXPECT_EQ(kAt + "'l' " + text, made.warnings);
}

TEST(GraphChecks, AMaskIsOfTheSlotOfItsSequence) {
  const NodeSpec s = sequence("s", "history");
  const NodeSpec mean = node("x", "reduce_mean", {"s", "m"}, {{"over", std::string("positions")}});
  const auto warnings = [](const std::vector<NodeSpec>& nodes) {
    const Found found = look_at(nodes);
    EXPECT_EQ("", found.refusal);
    return found.warnings;
  };
  EXPECT_EQ("", warnings({s, mask("history"), mean, fc("z", "x"), kLoss}));
  const std::string rest =
      "but the sequence is of slot 'history'; that is right only where both have as many keys in "
      "every example";
  EXPECT_EQ(kAt + "'x' (reduce_mean): its mask 'm' is of slot 'item', " + rest,
            warnings({s, mask("item"), mean, fc("z", "x"), kLoss}));
  NodeSpec scores = fc("c", "s");
  scores.attrs["per_position"] = true;
  const NodeSpec pooled = node("x", "attention_pooling", {"c", "s", "m"});
  EXPECT_EQ("", warnings({s, scores, mask("history"), pooled, fc("z", "x"), kLoss}));
  EXPECT_EQ(kAt + "'x' (attention_pooling): its mask 'm' is of slot 'user', " + rest,
            warnings({s, scores, mask("user"), pooled, fc("z", "x"), kLoss}));
  // Two sequences side by side: the mask of either.
  const std::vector<NodeSpec> two = {
      s,
      sequence("t", "item"),
      node("st", "add", {"s", "t"}),
      mask("item"),
      node("x", "reduce_mean", {"st", "m"}, {{"over", std::string("positions")}}),
      fc("z", "x"),
      kLoss};
  EXPECT_EQ("", warnings(two));
}

TEST(GraphChecks, NothingIsComparedWithItself) {
  const std::string rest = "with itself; its first two inputs are two different things";
  EXPECT_EQ(kAt + "'l' (bpr_loss): compares 'z' " + rest,
            refusal({kUser, kLogit, node("l", "bpr_loss", {"z", "z"})}));
  EXPECT_EQ(kAt + "'l' (in_batch_softmax): compares 'u' " + rest,
            refusal({kUser, node("l", "in_batch_softmax", {"u", "u"})}));
  EXPECT_EQ("", refusal({kUser, kItem, node("l", "in_batch_softmax", {"u", "i"})}));
}

TEST(GraphChecks, SomethingIsLearned) {
  NodeSpec none = kLoss;
  none.attrs["loss_weight"] = 0.0;
  EXPECT_EQ(kAt + "'loss' (logistic_loss): the only loss has loss_weight: 0, so nothing is learned",
            refusal({kUser, kLogit, none}));
  EXPECT_EQ("", refusal({kUser, kLogit, none, node("l", "mse_loss", {"z", "buy"})}));
  const NodeSpec sum = node("z", "reduce_sum", {"h"});
  EXPECT_EQ(kAt +
                "'loss' (logistic_loss): no gradient passes from a loss to a parameter or a "
                "table, so nothing is learned; comparisons let none through",
            refusal({kUser, node("h", "greater", {"u"}), sum, kLoss}));
  EXPECT_EQ(
      "", refusal({kUser, node("g", "greater", {"u"}), node("h", "mul", {"u", "g"}), sum, kLoss}));
}

TEST(GraphChecks, ASecondSigmoidIsWarnedAbout) {
  const std::string text =
      "'loss' (logistic_loss): 'z' is already the output of a sigmoid, and the loss applies a "
      "sigmoid itself; give it what comes before";
  EXPECT_EQ(kAt + text,
            look_at({kUser, fc("y", "u"), node("z", "sigmoid", {"y"}), kLoss}).warnings);
  NodeSpec squeezed = kLogit;
  squeezed.attrs["activation"] = std::string("sigmoid");
  EXPECT_EQ(kAt + text, look_at({kUser, squeezed, kLoss}).warnings);
}

TEST(GraphChecks, ClassesAreThoseOfTheLogits) {
  GraphBuilder builder(model());
  for (const NodeSpec& spec :
       {kUser, fc("z", "u", 7), node("l", "softmax_cross_entropy", {"z", "buy"})})
    ASSERT_TRUE(builder.add(spec).is_ok());
  const auto graph = builder.finish();
  const std::vector<ClassLabel> found = class_labels(*graph.value());
  ASSERT_EQ(1U, found.size());
  EXPECT_EQ(1U, found[0].label);
  EXPECT_EQ(7U, found[0].classes);
}

}  // namespace
}  // namespace flux
