#include "flux/nn/operator_run.h"

#include <algorithm>

#include "flux/nn/operator.h"
#include "flux/nn/plan.h"

namespace flux {
namespace {

size_t find_node(const Graph& graph, const std::string& name) {
  const auto& nodes = graph.nodes();
  return static_cast<size_t>(std::find_if(nodes.begin(), nodes.end(),
                                          [&](const Node& node) { return node.name == name; }) -
                             nodes.begin());
}

void write(const Tensor& to, const std::vector<float>& values, uint32_t batch) {
  for (uint32_t b = 0; b < batch; ++b)
    write_row(to, b, values.data() + static_cast<size_t>(b) * to.width, false);
}

std::vector<float> read(const Tensor& from, uint32_t batch) {
  std::vector<float> values, scratch(from.width);
  for (uint32_t b = 0; b < batch; ++b) {
    const float* row = read_row(from, b, scratch.data());
    values.insert(values.end(), row, row + from.width);
  }
  return values;
}

Status check_size(const char* what, size_t given, size_t wanted) {
  if (given == wanted) return Status::ok();
  return invalid("{} {} given, {} wanted", given, what, wanted);
}

// The node's own part of the flat vector.
struct OwnParameters {
  explicit OwnParameters(const Graph& graph, const Node& node) {
    for (const uint32_t p : node.parameters) {
      const Parameter& parameter = graph.parameters()[p];
      if (size == 0) offset = parameter.offset;
      size += parameter.size;
    }
  }
  size_t offset = 0, size = 0;
};

// What reading the table must not run past.
Status check_keys(const OperatorRun& run) {
  const OperatorRun::Keys& keys = run.keys;
  if (keys.dim == 0) return Status::ok();
  if (!run.inputs.empty()) return invalid("an operator with inputs is run without a table");
  const size_t places = static_cast<size_t>(run.batch) * keys.slots;
  if (!keys.begin.empty())
    FLUX_RETURN_IF_ERROR(check_size("beginnings of slots", keys.begin.size(), places + 1));
  FLUX_RETURN_IF_ERROR(
      check_size("keys", keys.index.size(), keys.begin.empty() ? places : keys.begin.back()));
  if (!keys.values.empty())
    FLUX_RETURN_IF_ERROR(check_size("values of keys", keys.values.size(), keys.index.size()));
  for (const uint32_t row : keys.index)
    if ((row + size_t{1}) * keys.dim > keys.rows.size())
      return invalid("key of row {}, but there are {} rows", row, keys.rows.size() / keys.dim);
  return Status::ok();
}

void give_keys(const OperatorRun::Keys& keys, NetInput* input) {
  input->begin = keys.begin.empty() ? nullptr : keys.begin.data();
  input->values = keys.values.empty() ? nullptr : keys.values.data();
  input->noise = keys.noise;
  if (keys.dim > 0)
    input->tables = {{keys.rows.data(), keys.rows.size() / keys.dim, 0, keys.index.data()}};
}

// What the data offers: the run's keys, and a table for each input.
ModelInputs model_of(const OperatorRun& run, const std::vector<std::string>& tables) {
  ModelInputs model;
  model.weights = true;
  model.slots = run.keys.slots;
  for (uint32_t s = 0; s < model.slots; ++s) model.slot_names.push_back(fmt::format("s{}", s));
  model.many_keys = !run.keys.begin.empty();
  model.values = !run.keys.values.empty();
  if (run.keys.dim > 0) model.tables["t"] = run.keys.dim;
  for (size_t i = 0; i < tables.size(); ++i)
    model.tables[tables[i]] = run.inputs[i].length * run.inputs[i].dim;
  return model;
}

Status check_sizes(const OperatorRun& run, const KernelArgs& args, const OwnParameters& own) {
  for (const OperatorRun::Input& input : run.inputs)
    FLUX_RETURN_IF_ERROR(check_size("input values", input.values.size(),
                                    static_cast<size_t>(run.batch) * input.length * input.dim));
  FLUX_RETURN_IF_ERROR(check_keys(run));
  FLUX_RETURN_IF_ERROR(check_size("parameters", run.parameters.size(), own.size));
  if (!run.labels.empty()) FLUX_RETURN_IF_ERROR(check_size("labels", run.labels.size(), run.batch));
  if (!run.weights.empty())
    FLUX_RETURN_IF_ERROR(check_size("weights", run.weights.size(), run.batch));
  if (args.node.def->is_loss) return Status::ok();
  return check_size("output gradients", run.output_gradient.size(),
                    static_cast<size_t>(run.batch) * args.output.width);
}

void narrow(Kernel* kernel, bool backward, uint32_t batch) {
  const uint32_t parts = kernel->begin_narrow(backward, batch);
  for (uint32_t part = 0; part < parts; ++part) kernel->narrow(backward, part);
}

void run_forward(Kernel* kernel, Step& step) {
  for (uint32_t part = 0; part < kernel->pack_parts(); ++part) kernel->pack(part);
  if (kernel->looks(false)) {
    kernel->look_forward(step);
    narrow(kernel, false, step.batch);
  }
  kernel->forward(step);
}

void run_backward(Kernel* kernel, Step& step, size_t table_rows) {
  if (kernel->looks(true)) {
    kernel->look_backward(step);
    narrow(kernel, true, step.batch);
  }
  kernel->backward(step);
  for (uint32_t part = 0; part < kernel->sum_parts(step.batch); ++part) kernel->sum(step, part);
  if (table_rows > 0) kernel->add_rows(step, 0, static_cast<uint32_t>(table_rows));
}

}  // namespace

Result<std::shared_ptr<const Graph>> operator_graph(const OperatorRun& run) {
  std::vector<std::string> names;
  for (size_t i = 0; i < run.inputs.size(); ++i) names.push_back(fmt::format("x{}", i));
  GraphBuilder builder(model_of(run, names));
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string table = names[i] + "_table";
    FLUX_RETURN_IF_ERROR(builder.add({table, "embedding", {}, {{"table", names[i]}}, ""}));
    FLUX_RETURN_IF_ERROR(builder.add(
        {names[i], "reshape", {table}, {{"length", int64_t{run.inputs[i].length}}}, ""}));
  }
  if (!run.labels.empty()) names.emplace_back("label");
  if (!run.weights.empty()) names.emplace_back("weight");
  FLUX_RETURN_IF_ERROR(builder.add({"y", run.op, names, run.attrs, ""}));
  if (!find_operator(run.op)->is_loss) {
    FLUX_RETURN_IF_ERROR(builder.add({"y_flat", "reshape", {"y"}, {{"length", int64_t{1}}}, ""}));
    FLUX_RETURN_IF_ERROR(builder.add({"z", "reduce_sum", {"y_flat"}, {}, ""}));
    FLUX_RETURN_IF_ERROR(builder.add({"loss", "mse_loss", {"z", "label"}, {}, ""}));
  }
  return builder.finish();
}

Result<OperatorResult> run_operator(const OperatorRun& run) {
  FLUX_ASSIGN_OR_RETURN(const auto graph, operator_graph(run));
  NetMemory memory;
  const Plan plan(*graph, Precision::kFp32, run.batch, memory);
  const KernelArgs args = plan.args(find_node(*graph, "y"));
  const bool is_loss = args.node.def->is_loss;
  const OwnParameters own(*graph, args.node);
  FLUX_RETURN_IF_ERROR(check_sizes(run, args, own));
  FLUX_ASSIGN_OR_RETURN(const auto kernel, args.node.def->make_kernel(args));

  std::vector<float> flat(graph->parameter_count()), flat_gradient(flat.size());
  std::copy(run.parameters.begin(), run.parameters.end(),
            flat.begin() + static_cast<int64_t>(own.offset));
  kernel->set_parameters(flat.data());
  for (size_t i = 0; i < run.inputs.size(); ++i)
    write(args.inputs[i].value, run.inputs[i].values, run.batch);
  if (!run.weights.empty()) write(args.inputs.back().value, run.weights, run.batch);

  OperatorResult result;
  result.output.resize(run.batch);
  NetInput input;
  input.batch = run.batch;
  input.labels = run.labels.data();
  give_keys(run.keys, &input);
  result.row_gradient.resize(run.keys.rows.size());
  NetGradients gradients{flat_gradient.data(), {result.row_gradient.data()}};
  std::vector<double> losses(row_parts(run.batch));
  Step step;
  step.input = &input;
  step.batch = step.end = run.batch;
  step.gradients = &gradients;
  step.predictions = result.output.data();
  step.loss_sums = losses.data();
  step.loss_stride = row_parts(run.batch);
  run_forward(kernel.get(), step);

  if (!is_loss) {
    result.output = read(args.output, run.batch);
    write(args.output_gradient, run.output_gradient, run.batch);
  }
  run_backward(kernel.get(), step, run.keys.dim == 0 ? 0 : run.keys.rows.size() / run.keys.dim);
  add_parts(losses.data(), row_parts(run.batch), 1, 1);
  result.loss = losses.empty() ? 0 : losses[0];
  for (size_t i = 0; i < run.inputs.size(); ++i) {
    // Where its producer looks for it: concat leaves it where it is.
    const KernelArgs producer = plan.args(args.node.inputs[i]);
    result.gradients.push_back(read(producer.output_gradient, run.batch));
  }
  const auto begin = flat_gradient.begin() + static_cast<int64_t>(own.offset);
  result.parameter_gradient.assign(begin, begin + static_cast<int64_t>(own.size));
  return result;
}

}  // namespace flux
