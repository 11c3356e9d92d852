// What one operator costs: thread CPU time per example, forward and backward, at a shape that CTR
// models have, in fp32 and bf16; beside it the bytes that it must move and the rate of that.
// Usage: op_bench [name ...]; without names every operator. Then one JSON line per operator and
// precision. Exit 1 if an operator has no shape here.
#include <algorithm>
#include <cstdio>
#include <set>

#include "flux/base/cpu.h"
#include "flux/nn/net.h"
#include "flux/nn/operator.h"
#include "flux/nn/operator_run.h"
#include "flux/nn/reference.h"

namespace flux {
namespace {

constexpr uint32_t kBatch = 500;
constexpr int kRounds = 25;

struct Shape {
  uint32_t length, dim;
};

struct OperatorCase {
  std::string op;
  std::vector<Shape> inputs;
  std::map<std::string, AttrValue> attrs{};
};

std::map<std::string, AttrValue> number(const char* name, int64_t value) {
  return {{name, value}};
}
std::map<std::string, AttrValue> real(const char* name, double value) {
  return {{name, value}};
}

// A hidden layer of 400, 26 slots of 10, a history of 20 items of 16.
constexpr Shape kLayer = {1, 400}, kSlots = {26, 10}, kHistory = {20, 16}, kOne = {1, 1};

void add_elementwise(std::vector<OperatorCase>& cases) {
  for (const char* op : {"abs", "elu", "exp", "gelu", "leaky_relu", "log", "neg", "relu", "scale",
                         "sigmoid", "silu", "softplus", "sqrt", "square", "tanh"})
    cases.push_back({op, {kLayer}});
  cases.push_back({"pow", {kLayer}, real("exponent", 2)});
  cases.push_back({"clip", {kLayer}, {{"min", -1.0}, {"max", 1.0}}});
  cases.push_back({"dropout", {kLayer}, real("rate", 0.5)});
  for (const char* op : {"add", "sub", "mul", "div", "maximum", "minimum", "equal", "not_equal",
                         "less", "less_equal", "greater", "greater_equal"})
    cases.push_back({op, {kLayer, kLayer}});
  cases.push_back({"select", {kLayer, kLayer, kLayer}});
}

void add_rows(std::vector<OperatorCase>& cases) {
  for (const char* op : {"softmax", "log_softmax", "layer_norm", "batch_norm", "data_norm", "dice",
                         "prelu", "l2_normalize"})
    cases.push_back({op, {kLayer}});
  for (const char* op : {"reduce_sum", "reduce_mean", "reduce_max", "transpose", "fm",
                         "bi_interaction", "dot_interaction", "cvm"})
    cases.push_back({op, {kSlots}});
  cases.push_back({"reshape", {kSlots}, number("length", 1)});
  cases.push_back({"concat", {kLayer, kLayer}});
  cases.push_back({"slice", {kLayer}, {{"begin", int64_t{100}}, {"end", int64_t{300}}}});
  cases.push_back({"gather", {kLayer}, {{"columns", std::vector<std::string>{"3", "7", "300"}}}});
  cases.push_back({"ffm", {{8, 32}}});
  cases.push_back({"dot", {{1, 64}, {1, 64}}});
  cases.push_back({"cosine", {{1, 64}, {1, 64}}});
}

void add_layers(std::vector<OperatorCase>& cases) {
  cases.push_back({"fc", {kLayer}, number("units", 400)});
  cases.push_back({"cross", {{1, 273}, {1, 273}}});
  cases.push_back({"cin", {kSlots, kSlots}, number("units", 64)});
  cases.push_back({"experts", {{1, 260}}, {{"experts", int64_t{4}}, {"units", int64_t{64}}}});
  cases.push_back({"gate", {{1, 4}, {4, 64}}});
  cases.push_back({"matmul", {kHistory, kHistory}});
  cases.push_back({"attention_features", {{1, 16}, kHistory}});
  cases.push_back({"attention_pooling", {{20, 1}, kHistory, {1, 20}}});
  cases.push_back({"multi_head_attention", {kHistory, kHistory, kHistory}, number("heads", 2)});
}

void add_losses(std::vector<OperatorCase>& cases) {
  for (const char* op : {"logistic_loss", "focal_loss", "hinge_loss", "mse_loss", "huber_loss"})
    cases.push_back({op, {kOne}});
  cases.push_back({"softmax_cross_entropy", {{1, 10}}});
  cases.push_back({"bpr_loss", {kOne, {1, 5}}});
  cases.push_back({"negative_sampling", {kOne, {5, 1}}});
  cases.push_back({"sampled_softmax", {kOne, {1, 20}, {1, 21}}});
  cases.push_back({"in_batch_softmax", {{1, 64}, {1, 64}}});
}

std::vector<OperatorCase> all_cases() {
  std::vector<OperatorCase> cases;
  add_elementwise(cases);
  add_rows(cases);
  add_layers(cases);
  add_losses(cases);
  return cases;
}

struct Cost {
  double forward_ns = 1e18, backward_ns = 1e18;  // per example, best round
  double bytes = 0;  // per example: inputs read twice, output and gradients moved once
};

std::shared_ptr<const Graph> graph_of(const OperatorCase& one) {
  OperatorRun run;
  run.op = one.op;
  run.attrs = one.attrs;
  for (const Shape& shape : one.inputs) run.inputs.push_back({shape.length, shape.dim, {}});
  const OperatorDef* def = find_operator(one.op);
  if (def->is_loss && def->label_input >= 0) run.labels = {0};
  return operator_graph(run).value();
}

double bytes_moved(const Graph& graph, const Node& node) {
  double inputs = 0;
  for (const uint32_t i : node.inputs) inputs += graph.nodes()[i].width;
  return 4.0 * (3 * inputs + 2 * node.width);
}

Cost measure(const OperatorCase& one, Precision precision) {
  const auto graph = graph_of(one);
  auto net = Net::compile(graph, {precision, kBatch, true}).value();
  const SampleBatch sample = make_sample(*graph, kBatch, kBatch, 1);
  const std::vector<float> flat = graph->initial_parameters(1);
  std::vector<float> parameters(flat.size() + 1), predictions(kBatch);
  std::vector<std::vector<float>> rows = sample.rows;
  NetGradients gradients{parameters.data(), {}};
  for (auto& table : rows) gradients.tables.push_back(table.data());
  const NetInput input = sample.view();
  size_t at = 0;
  while (graph->nodes()[at].name != "y") ++at;
  net->set_parameters(flat.data());
  Cost cost;
  for (int round = -2; round < kRounds; ++round) {
    const NodeTime before = net->profile()[at];
    net->train(input, &gradients, predictions.data());
    const NodeTime after = net->profile()[at];
    if (round < 0) continue;
    cost.forward_ns = std::min(cost.forward_ns, (after.forward_s - before.forward_s) * 1e9);
    cost.backward_ns = std::min(cost.backward_ns, (after.backward_s - before.backward_s) * 1e9);
  }
  cost.forward_ns /= kBatch;
  cost.backward_ns /= kBatch;
  cost.bytes = bytes_moved(*graph, graph->nodes()[at]);
  return cost;
}

std::string shapes_text(const OperatorCase& one) {
  std::string text;
  for (const Shape& shape : one.inputs)
    text += fmt::format("{}{}x{}", text.empty() ? "" : " ", shape.length, shape.dim);
  return text;
}

// Whether every operator has a shape here; says which have none.
bool complete(const std::vector<OperatorCase>& cases) {
  // The first three read keys (net_bench and the part `words` of the bench have them), the last is
  // mul by another name.
  std::set<std::string> seen = {"embedding", "sequence_mask", "skip_gram_loss",
                                "entrywise_product"};
  for (const OperatorCase& one : cases) seen.insert(one.op);
  bool all = true;
  for (const OperatorInfo& info : operator_infos()) {
    if (seen.contains(info.name)) continue;
    std::printf("no shape for operator %s\n", info.name.c_str());
    all = false;
  }
  return all;
}

int run(const std::set<std::string>& names) {
  const std::vector<OperatorCase> cases = all_cases();
  std::vector<Precision> precisions = {Precision::kFp32};
  if (cpu_has_avx512_bf16()) precisions.push_back(Precision::kBf16);
  std::string json;
  std::printf("%-22s %-20s  %29s %29s\n", "operator", "inputs", "fp32 ns/example fwd, bwd, GB/s",
              precisions.size() > 1 ? "bf16" : "");
  for (const OperatorCase& one : cases) {
    if (!names.empty() && !names.contains(one.op)) continue;
    std::printf("%-22s %-20s", one.op.c_str(), shapes_text(one).c_str());
    for (const Precision precision : precisions) {
      const Cost cost = measure(one, precision);
      const double rate = cost.bytes / (cost.forward_ns + cost.backward_ns);
      std::printf(" %10.1f %10.1f %8.1f", cost.forward_ns, cost.backward_ns, rate);
      json += fmt::format(
          "{{\"bench\": \"operator\", \"operator\": \"{}\", \"precision\": \"{}\", "
          "\"forward_ns\": {:.1f}, \"backward_ns\": {:.1f}, \"gb_s\": {:.2f}}}\n",
          one.op, precision_name(precision), cost.forward_ns, cost.backward_ns, rate);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  std::fputs(json.c_str(), stdout);
  return complete(cases) ? 0 : 1;
}

}  // namespace
}  // namespace flux

int main(int argc, char** argv) {
  return flux::run(std::set<std::string>(argv + 1, argv + argc));
}
