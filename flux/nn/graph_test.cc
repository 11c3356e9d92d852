#include "flux/nn/graph.h"

#include <set>

#include <gtest/gtest.h>

#include "flux/nn/reference.h"

namespace flux {
namespace {

const ModelInputs kInputs{26, 13, {{"emb", 10}, {"wide", 1}}};

NodeSpec node(const char* name, const char* op, std::vector<std::string> inputs,
              std::map<std::string, AttrValue> attrs = {}) {
  return {name, op, std::move(inputs), std::move(attrs), "job.yaml:12:5"};
}

std::string error_of(const std::vector<NodeSpec>& nodes, ModelInputs inputs = kInputs) {
  GraphBuilder builder(std::move(inputs));
  for (const NodeSpec& spec : nodes) {
    const Status status = builder.add(spec);
    if (!status.is_ok()) return status.message();
  }
  const auto graph = builder.finish();
  return graph.is_ok() ? "" : graph.status().message();
}

TEST(Graph, CtrDnnAsText) {
  EXPECT_EQ(ctr_dnn_graph()->to_text(),
            "dense = dense() -> [B,13]\n"
            "label = label() -> [B,1]\n"
            "emb = embedding() {table=emb} -> [B,26,10]\n"
            "x = concat(emb, dense) -> [B,273]\n"
            "fc1 = fc(x) {activation=relu, units=400} -> [B,400] "
            "fc1.weight[273,400]@0 fc1.bias[400]@109200\n"
            "fc2 = fc(fc1) {activation=relu, units=400} -> [B,400] "
            "fc2.weight[400,400]@109600 fc2.bias[400]@269600\n"
            "fc3 = fc(fc2) {activation=relu, units=400} -> [B,400] "
            "fc3.weight[400,400]@270000 fc3.bias[400]@430000\n"
            "logit = fc(fc3) {units=1} -> [B,1] "
            "logit.weight[400,1]@430400 logit.bias[1]@430800\n"
            "loss = logistic_loss(logit, label) -> [B,1]\n");
  EXPECT_EQ(ctr_dnn_graph()->parameter_count(), 430801U);
  EXPECT_EQ(ctr_dnn_graph()->hash(), ctr_dnn_graph()->hash());
  EXPECT_NE(ctr_dnn_graph(10)->hash(), ctr_dnn_graph(8)->hash());
}

TEST(Graph, InitialParametersStayInRangeAndDependOnNameAndSeed) {
  const auto graph = ctr_dnn_graph();
  const std::vector<float> flat = graph->initial_parameters(1);
  EXPECT_EQ(flat, graph->initial_parameters(1));
  EXPECT_NE(flat, graph->initial_parameters(2));
  for (const Parameter& p : graph->parameters()) {
    double sum = 0, square = 0;
    for (size_t i = 0; i < p.size; ++i) {
      const double value = flat[p.offset + i];
      EXPECT_LE(std::abs(value), p.init.value);
      sum += value;
      square += value * value;
    }
    if (p.size < 1000) continue;
    const double n = static_cast<double>(p.size);
    EXPECT_NEAR(sum / n, 0, 0.02 * p.init.value);
    EXPECT_NEAR(square / n, p.init.value * p.init.value / 3, 0.02 * p.init.value * p.init.value);
  }
  EXPECT_NE(flat[109600], flat[270000]);
}

TEST(Graph, ErrorsNameNodeOriginAndRemedy) {
  const std::string at = "job.yaml:12:5: node ";
  EXPECT_EQ(error_of({node("h", "fcc", {"dense"})}),
            at + "'h' (fcc): unknown operator 'fcc', did you mean 'fc'?");
  EXPECT_EQ(error_of({node("h", "fc", {"dense"})}),
            at + "'h' (fc): 'units' is required: width of the output");
  EXPECT_EQ(error_of({node("h", "fc", {"dense"}, {{"unit", int64_t{4}}})}),
            at + "'h' (fc): unknown attribute 'unit', did you mean 'units'?; known: units, "
                 "activation, bias, per_position");
  EXPECT_EQ(error_of({node("h", "fc", {"dense"}, {{"units", int64_t{0}}})}),
            at + "'h' (fc): 'units' must be between 1 and 65536, got 0");
  EXPECT_EQ(error_of({node("h", "fc", {"dense"}, {{"units", std::string("many")}})}),
            at + "'h' (fc): 'units' must be an integer, got many");
  EXPECT_EQ(error_of({node("h", "fc", {"dense"},
                           {{"units", int64_t{4}}, {"activation", std::string("rely")}})}),
            at +
                "'h' (fc): 'activation' must be one of none, relu, sigmoid, tanh, leaky_relu, elu, "
                "softplus, got 'rely', did "
                "you mean 'relu'?");
  EXPECT_EQ(error_of({node("h", "relu", {"dens"})}),
            at + "'h' (relu): no input named 'dens' is defined before it, did you mean 'dense'?; "
                 "defined: dense, label");
  EXPECT_EQ(error_of({node("h", "relu", {})}), at + "'h' (relu): takes 1 inputs, got 0 (none)");
  EXPECT_EQ(error_of({node("e", "embedding", {}, {{"table", std::string("emv")}})}),
            at + "'e' (embedding): no table named 'emv', did you mean 'emb'?; tables: emb, wide");
  EXPECT_EQ(error_of({node("dense", "relu", {"dense"})}),
            at + "'dense' (relu): the name is already taken by another node; choose another");
}

TEST(Graph, ErrorsNameShapes) {
  const std::string at = "job.yaml:12:5: node ";
  const NodeSpec emb = node("e", "embedding", {}, {{"table", std::string("emb")}});
  EXPECT_EQ(error_of({emb, node("s", "add", {"e", "dense"})}),
            at + "'s' (add): inputs must have one shape, or 1 where another has more; got "
                 "e[B,26,10], dense[B,13]");
  EXPECT_EQ(error_of({emb, node("l", "logistic_loss", {"e", "label"})}),
            at + "'l' (logistic_loss): what is predicted must be [B,1], got e[B,26,10], "
                 "label[B,1]; end the model with an fc of units: 1");
  EXPECT_EQ(
      error_of({node("l", "logistic_loss", {"label", "label"})}),
      at + "'l' (logistic_loss): inputs must be what is predicted and then a label (label), got "
           "label[B,1], label[B,1]");
  EXPECT_EQ(error_of({node("r", "relu", {"dense"})}, {26, 0, {}}),
            at + "'r' (relu): no input named 'dense' is defined before it (the data has no dense "
                 "features); defined: label");
}

TEST(Graph, AtLeastOneLossAndNothingUnused) {
  const NodeSpec logit = node("z", "fc", {"dense"}, {{"units", int64_t{1}}});
  const NodeSpec loss = node("l", "logistic_loss", {"z", "label"});
  EXPECT_EQ(error_of({logit, loss}), "");
  EXPECT_EQ(
      error_of({logit}),
      "job.yaml:12:5: node 'z' (fc): the model has no loss; add one behind this layer, e.g. a "
      "logistic_loss of 'z' and 'label'");
  EXPECT_EQ(error_of({logit, loss, node("m", "logistic_loss", {"z", "label"})}), "");
  EXPECT_EQ(error_of({logit, loss, node("r", "relu", {"dense"})}),
            "job.yaml:12:5: node 'r' (relu): nothing uses its output [B,13]; remove it or make it "
            "an input of another node");
}

TEST(Graph, OperatorsAreRegisteredWithDocs) {
  std::set<std::string> names;
  for (const OperatorInfo& info : operator_infos()) {
    names.insert(info.name);
    EXPECT_FALSE(info.doc.empty()) << info.name;
    for (const AttrSpec& attr : info.attrs) EXPECT_FALSE(attr.doc.empty()) << attr.name;
  }
  EXPECT_EQ(names.size(), operator_infos().size()) << "a name twice";
  for (const char* name : {"add", "concat", "embedding", "fc", "logistic_loss", "relu"})
    EXPECT_TRUE(names.contains(name)) << name;
}

}  // namespace
}  // namespace flux
