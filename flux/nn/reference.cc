#include "flux/nn/reference.h"

#include <algorithm>
#include <cmath>

#include "flux/base/random.h"
#include "flux/nn/operator.h"

namespace flux {
namespace {

std::vector<double> widen(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

// One vector of things that can be nudged (parameters, or rows of a table), with what Net says.
struct Nudged {
  std::string name;
  double* values;
  const float* gradient;
  size_t size;
};

class Checker {
 public:
  Checker(std::shared_ptr<const Graph> graph, const CheckOptions& options)
      : graph_(std::move(graph)),
        options_(options),
        sample_(make_sample(*graph_, options.batch, options.row_count, options.seed)),
        flat_(graph_->initial_parameters(options.seed)),
        parameters_(widen(flat_)),
        predictions_(options.batch * graph_->heads().size()) {
    for (const auto& rows : sample_.rows) rows_.push_back(widen(rows));
  }

  std::string run() {
    auto net = Net::compile(graph_, options_.net);
    if (!net.is_ok()) return net.status().message();
    net.value()->set_parameters(flat_.data());
    // Leftovers of a larger batch must not show.
    const SampleBatch large =
        make_sample(*graph_, options_.net.batch_max, options_.row_count, options_.seed + 1);
    train(*net.value(), large);
    const double loss = train(*net.value(), sample_);
    std::string problem = check_forward(*net.value(), loss);
    for (const Nudged& nudged : all_nudged())
      if (problem.empty()) problem = check_gradient(nudged);
    return problem;
  }

 private:
  double train(Net& net, const SampleBatch& sample) {
    parameter_gradient_.assign(flat_.size(), 7.0F);
    table_gradients_.clear();
    NetGradients gradients;
    gradients.parameters = parameter_gradient_.data();
    for (const auto& rows : sample.rows) table_gradients_.emplace_back(rows.size(), 7.0F);
    for (auto& table : table_gradients_) gradients.tables.push_back(table.data());
    predictions_.assign(sample.batch * graph_->heads().size(), -1.0F);
    return net.train(sample.view(), &gradients, predictions_.data());
  }

  std::string check_forward(Net& net, double loss) {
    const ReferenceResult want = run_reference(*graph_, sample_, parameters_, rows_);
    const double slack = options_.tolerance * sample_.batch;
    if (!(std::fabs(loss - want.loss_sum) <= slack))
      return fmt::format("loss {} but the reference has {}", loss, want.loss_sum);
    std::string problem = check_predictions(want);
    if (!problem.empty() || !options_.same_predict) return problem;
    const double again = net.predict(sample_.view(), predictions_.data());
    if (again != loss) return fmt::format("predict() has loss {}, train() {}", again, loss);
    return check_predictions(want);
  }

  std::string check_predictions(const ReferenceResult& want) const {
    for (size_t h = 0; h < want.predictions.size(); ++h) {
      for (uint32_t b = 0; b < sample_.batch; ++b) {
        const float got = predictions_[h * sample_.batch + b];
        if (!(std::fabs(got - want.predictions[h][b]) <= options_.tolerance))
          return fmt::format("prediction {} of {} is {}, the reference has {}", b,
                             graph_->heads()[h].name, got, want.predictions[h][b]);
      }
    }
    return "";
  }

  std::vector<Nudged> all_nudged() {
    std::vector<Nudged> all;
    for (const Parameter& p : graph_->parameters()) {
      if (p.update == UpdateKind::kSummary) continue;  // what is pushed for it is no derivative
      all.push_back(
          {p.name, parameters_.data() + p.offset, parameter_gradient_.data() + p.offset, p.size});
    }
    for (size_t t = 0; t < rows_.size(); ++t)
      all.push_back({"table " + graph_->tables()[t], rows_[t].data(), table_gradients_[t].data(),
                     rows_[t].size()});
    return all;
  }

  double mean_loss() const {
    return run_reference(*graph_, sample_, parameters_, rows_).loss_sum / sample_.batch;
  }

  double derivative(double* value) const {
    constexpr double kNudge = 1e-6;
    const double before = *value;
    *value = before + kNudge;
    const double above = mean_loss();
    *value = before - kNudge;
    const double below = mean_loss();
    *value = before;
    return (above - below) / (2 * kNudge);
  }

  // Judged by the norm over the coordinates taken: in bf16 a relu near zero may switch, which
  // moves single coordinates but hardly the whole.
  std::string check_gradient(const Nudged& nudged) const {
    Random random(options_.seed);
    const size_t n = std::min<size_t>(nudged.size, options_.coordinates);
    double wrong = 0, norm = 1e-12, worst = -1;
    std::string example;
    for (size_t k = 0; k < n; ++k) {
      const size_t i = n == nudged.size ? k : random.below(nudged.size);
      const double want = derivative(nudged.values + i);
      const double difference = std::fabs(nudged.gradient[i] - want);
      wrong += difference * difference;
      norm += want * want;
      if (difference <= worst) continue;
      worst = difference;
      example =
          fmt::format("[{}] is {}, the numeric derivative is {}", i, nudged.gradient[i], want);
    }
    if (std::sqrt(wrong) <= options_.tolerance * std::sqrt(norm)) return "";
    return fmt::format("gradient of {} is off by {:.2e} of its norm; {}", nudged.name,
                       std::sqrt(wrong / norm), example);
  }

  std::shared_ptr<const Graph> graph_;
  CheckOptions options_;
  SampleBatch sample_;
  std::vector<float> flat_;
  std::vector<double> parameters_;
  std::vector<std::vector<double>> rows_;
  std::vector<float> parameter_gradient_, predictions_;
  std::vector<std::vector<float>> table_gradients_;
};

NodeSpec node(const char* name, const char* op, std::vector<std::string> inputs,
              std::map<std::string, AttrValue> attrs = {}) {
  return {name, op, std::move(inputs), std::move(attrs), ""};
}

}  // namespace

NetInput SampleBatch::view() const {
  NetInput input;
  input.batch = batch;
  input.labels = labels.data();
  input.dense = dense.data();
  for (const auto& table : rows) input.tables.push_back({table.data(), row_count, 0, index.data()});
  input.begin = begin.empty() ? nullptr : begin.data();
  input.weights = weights.empty() ? nullptr : weights.data();
  input.values = values.empty() ? nullptr : values.data();
  input.noise = noise;
  return input;
}

SampleBatch make_sample(const Graph& graph, uint32_t batch, uint32_t row_count, uint64_t seed) {
  Random random(seed);
  SampleBatch sample;
  sample.batch = batch;
  sample.row_count = row_count;
  sample.noise = seed;
  const ModelInputs& inputs = graph.inputs();
  const auto number = [&] { return static_cast<float>(random.normal()) * 0.5F; };
  for (size_t i = 0; i < batch * inputs.labels.size(); ++i)
    sample.labels.push_back(random.chance(0.3) ? 1.0F : 0.0F);
  for (size_t i = 0; i < static_cast<size_t>(batch) * inputs.dense; ++i)
    sample.dense.push_back(number());
  if (inputs.many_keys) sample.begin.push_back(0);
  for (size_t i = 0; i < static_cast<size_t>(batch) * inputs.slots; ++i) {
    const uint64_t keys = inputs.many_keys ? random.below(5) : 1;
    for (uint64_t k = 0; k < keys; ++k)
      sample.index.push_back(static_cast<uint32_t>(random.below(row_count)));
    if (inputs.many_keys) sample.begin.push_back(static_cast<uint32_t>(sample.index.size()));
  }
  for (size_t i = 0; i < sample.index.size() && inputs.values; ++i)
    sample.values.push_back(random.chance(0.1) ? 0.0F : number() * 2);
  for (uint32_t b = 0; b < batch && inputs.weights; ++b)
    sample.weights.push_back(static_cast<float>(random.below(4)) * 0.5F);
  for (const std::string& table : graph.tables()) {
    sample.rows.emplace_back();
    const size_t n = static_cast<size_t>(row_count) * graph.inputs().tables.at(table);
    for (size_t i = 0; i < n; ++i) sample.rows.back().push_back(number());
  }
  return sample;
}

namespace {

std::vector<double> source_values(const Node& node, const SampleBatch& sample) {
  if (node.op == "dense") return widen(sample.dense);
  if (node.op == "weight") return widen(sample.weights);
  const auto column = sample.labels.begin() + label_column(node) * static_cast<int>(sample.batch);
  return {column, column + sample.batch};
}

}  // namespace

ReferenceResult run_reference(const Graph& graph, const SampleBatch& sample,
                              const std::vector<double>& parameters,
                              const std::vector<std::vector<double>>& rows) {
  ReferenceResult result;
  for (const Node& node : graph.nodes()) {
    if (find_source(node.op) != nullptr) {
      result.values.push_back(source_values(node, sample));
      continue;
    }
    std::vector<double> output(static_cast<size_t>(sample.batch) * node.width);
    std::vector<double> predictions(sample.batch);
    ReferenceCall call{graph, node, sample.batch, {}, parameters.data()};
    for (uint32_t i : node.inputs) call.inputs.push_back(result.values[i].data());
    if (node.table >= 0) call.rows = rows[static_cast<size_t>(node.table)].data();
    call.index = sample.index.data();
    call.begin = sample.begin.empty() ? nullptr : sample.begin.data();
    call.values = sample.values.empty() ? nullptr : sample.values.data();
    call.noise = sample.noise;
    call.output = output.data();
    call.predictions = predictions.data();
    node.def->reference(call);
    if (node.def->is_loss) {
      const Head& head = graph.heads()[result.predictions.size()];
      for (const double loss : output) result.loss_sum += static_cast<double>(head.weight) * loss;
      result.predictions.push_back(std::move(predictions));
    }
    result.values.push_back(std::move(output));
  }
  return result;
}

std::string check_net(std::shared_ptr<const Graph> graph, const CheckOptions& options) {
  return Checker(std::move(graph), options).run();
}

std::shared_ptr<const Graph> must_build(const ModelInputs& inputs,
                                        const std::vector<NodeSpec>& nodes) {
  GraphBuilder builder(inputs);
  for (const NodeSpec& spec : nodes) {
    const Status status = builder.add(spec);
    FLUX_CHECK(status.is_ok(), "{}", status.message());
  }
  return builder.finish().value();
}

namespace {

// Three layers of 400 over x.
void add_hidden_layers(std::vector<NodeSpec>* nodes) {
  const AttrValue units = int64_t{400}, relu = std::string("relu");
  nodes->push_back(node("fc1", "fc", {"x"}, {{"units", units}, {"activation", relu}}));
  nodes->push_back(node("fc2", "fc", {"fc1"}, {{"units", units}, {"activation", relu}}));
  nodes->push_back(node("fc3", "fc", {"fc2"}, {{"units", units}, {"activation", relu}}));
}

void add_logit_and_loss(std::vector<NodeSpec>* nodes, const char* input) {
  nodes->push_back(node("logit", "fc", {input}, {{"units", int64_t{1}}}));
  nodes->push_back(node("loss", "logistic_loss", {"logit", "label"}));
}

}  // namespace

std::shared_ptr<const Graph> ctr_dnn_graph(uint32_t dim) {
  std::vector<NodeSpec> nodes = {node("emb", "embedding", {}, {{"table", std::string("emb")}}),
                                 node("x", "concat", {"emb", "dense"})};
  add_hidden_layers(&nodes);
  add_logit_and_loss(&nodes, "fc3");
  return must_build({26, 13, {{"emb", dim}}}, nodes);
}

std::shared_ptr<const Graph> deepfm_graph() {
  const AttrValue one = int64_t{1};
  std::vector<NodeSpec> nodes = {
      node("wide", "embedding", {},
           {{"table", std::string("weight")}, {"combine", std::string("sum")}}),
      node("linear", "fc", {"dense"}, {{"units", one}}),
      node("emb", "embedding", {}, {{"table", std::string("vector")}}),
      node("pairs", "fm", {"emb"}), node("x", "concat", {"emb", "dense"})};
  add_hidden_layers(&nodes);
  nodes.push_back(node("deep", "fc", {"fc3"}, {{"units", one}}));
  nodes.push_back(node("logit", "add", {"wide", "linear", "pairs", "deep"}));
  nodes.push_back(node("loss", "logistic_loss", {"logit", "label"}));
  return must_build({26, 13, {{"weight", 1}, {"vector", 10}}}, nodes);
}

std::shared_ptr<const Graph> dcn_v2_graph() {
  std::vector<NodeSpec> nodes = {node("emb", "embedding", {}, {{"table", std::string("vector")}}),
                                 node("x", "concat", {"emb", "dense"}),
                                 node("x1", "cross", {"x", "x"}), node("x2", "cross", {"x", "x1"}),
                                 node("x3", "cross", {"x", "x2"})};
  add_hidden_layers(&nodes);
  nodes.push_back(node("both", "concat", {"x3", "fc3"}));
  add_logit_and_loss(&nodes, "both");
  return must_build({26, 13, {{"vector", 10}}}, nodes);
}

std::shared_ptr<const Graph> logistic_regression_graph() {
  return must_build(
      {26, 13, {{"w", 1}}},
      {node("wide", "embedding", {},
            {{"table", std::string("w")}, {"combine", std::string("sum")}}),
       node("bias", "fc", {"dense"}, {{"units", int64_t{1}}}),
       node("logit", "add", {"wide", "bias"}), node("loss", "logistic_loss", {"logit", "label"})});
}

}  // namespace flux
