#include "flux/nn/graph_checks.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "flux/nn/attributes.h"
#include "flux/nn/operator.h"

namespace flux {
namespace {

using Nodes = std::vector<Node>;

template <typename... Names>
bool is_one_of(const std::string& op, const Names&... names) {
  return ((op == names) || ...);
}

Status refuse(const Node& node, const std::string& what) {
  return invalid("{}{}", node_prefix(node.origin, node.name, node.op), what);
}

// The inputs of a loss from which it predicts: not the label, not the example's weight.
std::vector<uint32_t> predicting_inputs(const Nodes& nodes, const Node& loss) {
  std::vector<uint32_t> inputs = loss.inputs;
  if (loss.def->label_input >= 0) {
    inputs.resize(static_cast<size_t>(loss.def->label_input));
  } else if (inputs.size() > static_cast<size_t>(loss.def->info.inputs_min)) {
    const Node& last = nodes[inputs.back()];
    if (last.width == 1 && !last.trainable) inputs.pop_back();
  }
  return inputs;
}

// The inputs of a node by which it is computed; of a loss those from which it predicts.
std::vector<uint32_t> value_inputs(const Nodes& nodes, const Node& node) {
  return node.def->is_loss ? predicting_inputs(nodes, node) : node.inputs;
}

// At prediction nobody knows the label: what is computed from it has learned nothing else.
Status check_labels(const Nodes& nodes) {
  std::vector<bool> predicts(nodes.size(), false);
  for (size_t i = nodes.size(); i-- > 0;) {
    const Node& node = nodes[i];
    if (!node.def->is_loss && !predicts[i]) continue;
    for (const uint32_t input : value_inputs(nodes, node)) {
      predicts[input] = true;
      if (nodes[input].op == "label")
        return refuse(node, fmt::format("'{}' is a label, which is not known when predicting; only "
                                        "a loss takes it, after what is predicted",
                                        nodes[input].name));
    }
  }
  return Status::ok();
}

// The slots whose keys the positions of each node are, where they are known.
std::vector<std::set<uint32_t>> position_slots(const Nodes& nodes) {
  std::vector<std::set<uint32_t>> slots(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    if (node.length < 2 || is_one_of(node.op, "sequence_mask", "transpose", "reshape", "matmul"))
      continue;
    if (node.op == "embedding") {
      if (node.text_attr("combine") == "sequence") slots[i].insert(node.slots[0]);
      continue;
    }
    for (const uint32_t input : node.inputs)
      if (nodes[input].length == node.length)
        slots[i].insert(slots[input].begin(), slots[input].end());
  }
  return slots;
}

bool takes_mask(const std::string& op) {
  return is_one_of(op, "attention_pooling", "multi_head_attention", "reduce_max", "reduce_mean",
                   "reduce_sum", "softmax", "mul", "entrywise_product", "select");
}

// A score is held against others, a tower against another.
Status check_pairs(const Nodes& nodes) {
  for (const Node& node : nodes)
    if (node.def->is_loss && node.def->label_input < 0 && node.inputs.size() > 1 &&
        node.inputs[0] == node.inputs[1])
      return refuse(node, fmt::format("compares '{}' with itself; its first two inputs are two "
                                      "different things",
                                      nodes[node.inputs[0]].name));
  return Status::ok();
}

// Which nodes have something above them, or their own, that a gradient of theirs moves.
std::vector<bool> learning_nodes(const Graph& graph) {
  const Nodes& nodes = graph.nodes();
  std::vector<bool> learns(nodes.size(), false);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    if (!node.def->passes_gradient) continue;
    bool own = node.table >= 0;
    for (const uint32_t p : node.parameters)
      own = own || graph.parameters()[p].update == UpdateKind::kOptimizer;
    std::vector<uint32_t> inputs = value_inputs(nodes, node);
    if (node.op == "select") inputs.erase(inputs.begin());  // the condition
    learns[i] = own || std::any_of(inputs.begin(), inputs.end(),
                                   [&](uint32_t input) { return bool{learns[input]}; });
  }
  return learns;
}

// A network of summaries alone is of use without.
Status check_learning(const Graph& graph) {
  if (!graph.summaries().empty()) return Status::ok();
  const std::vector<Head>& heads = graph.heads();
  const Node& first = graph.nodes()[heads[0].node];
  if (std::all_of(heads.begin(), heads.end(), [](const Head& head) { return head.weight == 0; }))
    return refuse(first, heads.size() == 1
                             ? "the only loss has loss_weight: 0, so nothing is learned"
                             : "every loss has loss_weight: 0, so nothing is learned");
  const std::vector<bool> learns = learning_nodes(graph);
  if (std::any_of(heads.begin(), heads.end(),
                  [&](const Head& head) { return head.weight != 0 && learns[head.node]; }))
    return Status::ok();
  return refuse(first,
                "no gradient passes from a loss to a parameter or a table, so nothing is learned; "
                "comparisons let none through");
}

void warn(const Node& node, const std::string& what, std::vector<std::string>* out) {
  out->push_back(node_prefix(node.origin, node.name, node.op) + what);
}

void warn_of_squeezed(const Nodes& nodes, const Node& loss, std::vector<std::string>* out) {
  const bool classes = loss.op == "softmax_cross_entropy";
  if (!classes && loss.def->info.probability_input < 0) return;
  const Node& predicted = nodes[loss.inputs[0]];
  const bool squeezed = is_one_of(predicted.op, "sigmoid", "softmax") ||
                        (predicted.op == "fc" && predicted.text_attr("activation") == "sigmoid");
  if (squeezed)
    warn(loss,
         fmt::format("'{}' is already the output of a {}, and the loss applies {} itself; give it "
                     "what comes before",
                     predicted.name, predicted.op == "softmax" ? "softmax" : "sigmoid",
                     classes ? "a softmax" : "a sigmoid"),
         out);
}

// The labels that each node is computed from.
std::vector<std::set<std::string>> labels_above(const Nodes& nodes) {
  std::vector<std::set<std::string>> labels(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].op == "label") labels[i].insert(nodes[i].name);
    for (const uint32_t input : nodes[i].inputs)
      labels[i].insert(labels[input].begin(), labels[input].end());
  }
  return labels;
}

void warn_of_label_weight(const Nodes& nodes, const Node& loss, std::vector<std::string>* out) {
  const size_t others = predicting_inputs(nodes, loss).size() + (loss.def->label_input < 0 ? 0 : 1);
  const auto labels = labels_above(nodes);
  for (size_t i = others; i < loss.inputs.size(); ++i)
    for (const std::string& label : labels[loss.inputs[i]])
      warn(loss,
           fmt::format("the weight of an example is made of its label '{}', so that what is "
                       "predicted holds only for examples as they are weighted",
                       label),
           out);
}

// Sequences side by side may share a mask; more often it is the wrong one.
void warn_of_masks(const Graph& graph, std::vector<std::string>* out) {
  const Nodes& nodes = graph.nodes();
  const auto slots = position_slots(nodes);
  for (const Node& node : nodes) {
    if (!takes_mask(node.op)) continue;
    for (const uint32_t m : node.inputs) {
      const Node& mask = nodes[m];
      if (mask.op != "sequence_mask") continue;
      std::set<uint32_t> masked;
      for (const uint32_t input : node.inputs)
        if (nodes[input].length == mask.length)
          masked.insert(slots[input].begin(), slots[input].end());
      if (masked.empty() || masked.contains(mask.slots[0])) continue;
      warn(node,
           fmt::format("its mask '{}' is of slot '{}', but the sequence is of slot '{}'; that is "
                       "right only where both have as many keys in every example",
                       mask.name, mask.text_attr("slot"),
                       graph.inputs().slot_names[*masked.begin()]),
           out);
    }
  }
}

}  // namespace

Status check_graph(const Graph& graph) {
  FLUX_RETURN_IF_ERROR(check_labels(graph.nodes()));
  FLUX_RETURN_IF_ERROR(check_pairs(graph.nodes()));
  return check_learning(graph);
}

std::vector<std::string> graph_warnings(const Graph& graph) {
  std::vector<std::string> out;
  for (const Head& head : graph.heads()) {
    const Node& loss = graph.nodes()[head.node];
    warn_of_squeezed(graph.nodes(), loss, &out);
    warn_of_label_weight(graph.nodes(), loss, &out);
  }
  warn_of_masks(graph, &out);
  return out;
}

std::vector<ClassLabel> class_labels(const Graph& graph) {
  std::vector<ClassLabel> out;
  for (const Head& head : graph.heads()) {
    const Node& loss = graph.nodes()[head.node];
    if (loss.op == "softmax_cross_entropy")
      out.push_back({static_cast<uint32_t>(head.label), graph.nodes()[loss.inputs[0]].width});
  }
  return out;
}

}  // namespace flux
