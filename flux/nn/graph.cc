#include "flux/nn/graph.h"

#include <algorithm>

#include <fmt/format.h>

#include "flux/base/hash.h"
#include "flux/base/text.h"
#include "flux/nn/attributes.h"
#include "flux/nn/initial_values.h"
#include "flux/nn/operator.h"
#include "flux/nn/parameter_attrs.h"

namespace flux {

struct Graph::Impl {
  ModelInputs inputs;
  std::vector<Node> nodes;
  std::vector<Parameter> parameters;
  std::vector<std::string> tables;
  std::vector<Head> heads;
  size_t parameter_count = 0;
};

Graph::Graph() : impl_(std::make_unique<Impl>()) {}
Graph::~Graph() = default;

const std::vector<Parameter>& Graph::parameters() const {
  return impl_->parameters;
}
size_t Graph::parameter_count() const {
  return impl_->parameter_count;
}
const std::vector<std::string>& Graph::tables() const {
  return impl_->tables;
}
const ModelInputs& Graph::inputs() const {
  return impl_->inputs;
}
const std::vector<Node>& Graph::nodes() const {
  return impl_->nodes;
}
const std::vector<Head>& Graph::heads() const {
  return impl_->heads;
}

std::vector<float> Graph::initial_parameters(uint64_t seed) const {
  std::vector<float> flat(parameter_count());
  for (const Parameter& p : parameters())
    fill_initial(p, seed, std::span(flat).subspan(p.offset, p.size));
  return flat;
}

std::vector<FlatRange> Graph::summaries() const {
  std::vector<FlatRange> ranges;
  for (const Parameter& p : parameters())
    if (p.update == UpdateKind::kSummary) ranges.push_back({p.offset, p.offset + p.size});
  return ranges;
}

namespace {
// An attribute that a later version adds changes no text (and no hash) of a model without it.
bool is_default(const OperatorDef& def, const std::string& key, const AttrValue& value) {
  return std::any_of(def.info.attrs.begin(), def.info.attrs.end(), [&](const AttrSpec& spec) {
    return spec.name == key && !spec.required && spec.default_value == value;
  });
}
}  // namespace

std::string Graph::to_text() const {
  std::string text;
  for (const Node& node : nodes()) {
    std::vector<std::string> attrs, inputs;
    for (const auto& [key, value] : node.attrs)
      if (!is_default(*node.def, key, value))
        attrs.push_back(fmt::format("{}={}", key, attr_text(value)));
    for (uint32_t i : node.inputs) inputs.push_back(nodes()[i].name);
    text += fmt::format("{} = {}({})", node.name, node.op, join(inputs, ", "));
    if (!attrs.empty()) text += fmt::format(" {{{}}}", join(attrs, ", "));
    text += " -> " + node.shape();
    for (uint32_t i : node.parameters) {
      const Parameter& p = parameters()[i];
      text += fmt::format(" {}[{}]@{}", p.name, fmt::join(p.shape, ","), p.offset);
      if (p.update == UpdateKind::kSummary) text += " summary";
    }
    text += "\n";
  }
  return text;
}

namespace {
std::string settings_text(const Parameter& p) {
  std::string text = fmt::format("{}~{}", p.name, p.init.value);
  if (p.init.kind != InitKind::kUniform)
    text += fmt::format(" init {}", static_cast<int>(p.init.kind));
  if (p.update == UpdateKind::kSummary) text += fmt::format(" decay {}", p.decay);
  if (p.lr_scale != 1) text += fmt::format(" lr x{}", p.lr_scale);
  return text + "\n";
}
}  // namespace

uint64_t Graph::hash() const {
  std::string text = to_text();
  text += fmt::format("slots={} dense={}\n", inputs().slots, inputs().dense);
  if (!inputs().slot_names.empty() || inputs().many_keys)
    text += fmt::format("slots={} many={}\n", join(inputs().slot_names, ","), inputs().many_keys);
  if (inputs().values) text += "values\n";
  for (const std::string& table : tables())
    text += fmt::format("{}={}\n", table, inputs().tables.at(table));
  for (const auto& [table, slots] : inputs().table_slots)
    text += fmt::format("{} of {}\n", table, join(slots, ","));
  for (const Parameter& p : parameters()) text += settings_text(p);
  return hash_bytes(text);
}

Parameter& InferContext::add_parameter(const std::string& name, std::vector<int64_t> shape,
                                       float init_range) {
  Parameter p;
  p.name = fmt::format("{}.{}", node.name, name);
  p.size = 1;
  for (int64_t n : shape) p.size *= static_cast<size_t>(n);
  p.shape = std::move(shape);
  p.init.value = init_range;
  return parameters.emplace_back(std::move(p));
}

Status InferContext::fail(const std::string& what) const {
  return invalid("{}{}", node_prefix(node.origin, node.name, node.op), what);
}

std::string InferContext::shapes() const {
  std::vector<std::string> parts;
  for (const Node* input : inputs) parts.push_back(input->name + input->shape());
  return join(parts, ", ");
}

std::string Node::shape() const {
  return length == 1 ? fmt::format("[B,{}]", width) : fmt::format("[B,{},{}]", length, dim());
}

Status InferContext::find_slots(const std::vector<std::string>& names) const {
  node.slots.clear();
  if (names.empty())
    for (uint32_t s = 0; s < model.slots; ++s) node.slots.push_back(s);
  for (const std::string& name : names) {
    const auto at = std::find(model.slot_names.begin(), model.slot_names.end(), name);
    if (at == model.slot_names.end())
      return fail(fmt::format("the data has no slot '{}'{}; slots: {}", name,
                              did_you_mean(name, model.slot_names),
                              model.slot_names.empty() ? "they have no names in this format"
                                                       : join(model.slot_names, ", ")));
    node.slots.push_back(static_cast<uint32_t>(at - model.slot_names.begin()));
  }
  return Status::ok();
}

struct GraphBuilder::Impl {
  std::shared_ptr<Graph> graph;
  std::vector<std::string> names;

  Graph::Impl& g() const { return *graph->impl_; }
  void add_source(const std::string& name, const char* op, uint32_t width, int64_t column = 0) {
    Node node;
    node.name = name;
    node.op = op;
    node.def = find_source(op);
    node.width = width;
    if (column > 0) node.attrs["column"] = column;
    names.push_back(name);
    g().nodes.push_back(std::move(node));
  }
  Status resolve_inputs(const NodeSpec& spec, Node& node) const;
  void commit(InferContext& context, Node node);
  void find_heads() const;
  Status no_loss() const;
  void add_counter_if() const;
};

GraphBuilder::GraphBuilder(ModelInputs inputs) : impl_(std::make_unique<Impl>()) {
  impl_->graph = std::shared_ptr<Graph>(new Graph());
  const uint32_t dense = inputs.dense;
  impl_->g().inputs = std::move(inputs);
  if (dense > 0) impl_->add_source("dense", "dense", dense);
  const ModelInputs& given = impl_->g().inputs;
  for (size_t i = 0; i < given.labels.size(); ++i)
    impl_->add_source(given.labels[i], "label", 1, static_cast<int64_t>(i));
  if (given.weights) impl_->add_source("weight", "weight", 1);
}
GraphBuilder::~GraphBuilder() = default;

Status GraphBuilder::Impl::resolve_inputs(const NodeSpec& spec, Node& node) const {
  const OperatorInfo& info = node.def->info;
  const std::string where = node_prefix(spec.origin, spec.name, spec.op);
  const int count = static_cast<int>(spec.inputs.size());
  if (count < info.inputs_min || count > info.inputs_max) {
    const std::string wanted = info.inputs_min == info.inputs_max
                                   ? fmt::format("{}", info.inputs_min)
                                   : fmt::format("{} to {}", info.inputs_min, info.inputs_max);
    return invalid("{}takes {} inputs, got {} ({})", where, wanted, count,
                   count == 0 ? "none" : join(spec.inputs, ", "));
  }
  for (const std::string& input : spec.inputs) {
    const auto it = std::find(names.begin(), names.end(), input);
    if (it == names.end()) {
      const bool no_dense = input == "dense" && g().inputs.dense == 0;
      return invalid("{}no input named '{}' is defined before it{}; defined: {}", where, input,
                     no_dense ? " (the data has no dense features)" : did_you_mean(input, names),
                     join(names, ", "));
    }
    node.inputs.push_back(static_cast<uint32_t>(it - names.begin()));
    if (g().nodes[node.inputs.back()].def->is_loss)
      return invalid("{}'{}' is a loss, which has no output; name what it is of", where, input);
  }
  return Status::ok();
}

void GraphBuilder::Impl::commit(InferContext& context, Node node) {
  for (Parameter& p : context.parameters) {
    p.offset = g().parameter_count;
    g().parameter_count += p.size;
    node.parameters.push_back(static_cast<uint32_t>(g().parameters.size()));
    g().parameters.push_back(std::move(p));
  }
  if (!context.table.empty()) {
    auto& tables = g().tables;
    auto it = std::find(tables.begin(), tables.end(), context.table);
    if (it == tables.end()) it = tables.insert(tables.end(), context.table);
    node.table = static_cast<int>(it - tables.begin());
  }
  node.trainable = !node.parameters.empty() || node.table >= 0;
  for (const Node* input : context.inputs) node.trainable = node.trainable || input->trainable;
  names.push_back(node.name);
  g().nodes.push_back(std::move(node));
}

Status GraphBuilder::add(NodeSpec spec) {
  const std::string where = node_prefix(spec.origin, spec.name, spec.op);
  if (spec.name.empty()) return invalid("{}a node needs a name", where);
  const auto& names = impl_->names;
  if (std::find(names.begin(), names.end(), spec.name) != names.end())
    return invalid("{}the name is already taken by another node; choose another", where);
  Node node;
  node.name = spec.name;
  node.op = spec.op;
  node.origin = spec.origin;
  node.def = find_operator(spec.op);
  if (node.def == nullptr) {
    std::vector<std::string> known;
    for (const OperatorInfo& info : operator_infos()) known.push_back(info.name);
    const std::string near = did_you_mean(spec.op, known);
    return invalid("{}unknown operator '{}'{}", where, spec.op,
                   near.empty() ? "; known: " + join(known, ", ") : near);
  }
  const auto of_parameters = take_parameter_attributes(node.def->info.attrs, &spec.attrs);
  FLUX_ASSIGN_OR_RETURN(node.attrs, check_attributes(node.def->info.attrs, spec.attrs, where));
  FLUX_RETURN_IF_ERROR(impl_->resolve_inputs(spec, node));
  std::vector<const Node*> inputs;
  for (uint32_t i : node.inputs) inputs.push_back(&impl_->g().nodes[i]);
  InferContext context{impl_->g().inputs, inputs, node, {}, {}};
  FLUX_RETURN_IF_ERROR(node.def->infer(context));
  FLUX_CHECK(node.width > 0, "operator {} inferred no width", node.op);
  FLUX_RETURN_IF_ERROR(apply_parameter_attributes(of_parameters, where, &context.parameters));
  impl_->commit(context, std::move(node));
  return Status::ok();
}

void GraphBuilder::Impl::find_heads() const {
  const std::vector<Node>& nodes = g().nodes;
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    if (!node.def->is_loss) continue;
    Head head{node.name, i, -1, 1.0F};
    if (node.def->label_input >= 0)
      head.label = label_column(nodes[node.inputs[static_cast<size_t>(node.def->label_input)]]);
    const auto weight = node.attrs.find(kLossWeight);
    if (weight != node.attrs.end())
      head.weight = static_cast<float>(std::get<double>(weight->second));
    g().heads.push_back(std::move(head));
  }
}

// Rows of data with any number of keys, or of some slots only, cannot tell how many examples they
// saw; the shard of a dense parameter can.
void GraphBuilder::Impl::add_counter_if() const {
  if (g().parameter_count > 0) return;
  if (!g().inputs.many_keys && g().inputs.table_slots.empty()) return;
  Parameter counter;
  counter.name = "examples.counter";
  counter.shape = {1};
  counter.size = 1;
  g().parameters.push_back(std::move(counter));
  g().parameter_count = 1;
}

Status GraphBuilder::Impl::no_loss() const {
  if (g().nodes.empty() || g().nodes.back().origin.empty()) return invalid("the model has no loss");
  const Node& last = g().nodes.back();
  return invalid(
      "{}the model has no loss; add one behind this layer, e.g. a logistic_loss of '{}' and '{}'",
      node_prefix(last.origin, last.name, last.op), last.name,
      g().inputs.labels.empty() ? "label" : g().inputs.labels[0]);
}

Result<std::shared_ptr<const Graph>> GraphBuilder::finish() {
  const std::vector<Node>& nodes = impl_->g().nodes;
  std::vector<int> consumers(nodes.size(), 0);
  for (const Node& node : nodes)
    for (uint32_t i : node.inputs) ++consumers[i];
  impl_->find_heads();
  if (impl_->g().heads.empty()) return impl_->no_loss();
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    if (consumers[i] > 0 || node.def->is_loss || find_source(node.op) != nullptr) continue;
    return invalid("{}nothing uses its output {}; remove it or make it an input of another node",
                   node_prefix(node.origin, node.name, node.op), node.shape());
  }
  impl_->add_counter_if();
  return std::shared_ptr<const Graph>(std::move(impl_->graph));
}

}  // namespace flux
