// The plain execution of a graph in double, node by node, and check_net(), which holds a Net
// against it: predictions, loss, and gradients by central differences. Kept for ever as the oracle
// of the fast kernels; slow on purpose.
// Pure but for the memory it returns.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "flux/nn/graph.h"
#include "flux/nn/net.h"

namespace flux {

// A batch that owns its numbers, in float (for Net) and in double (for the reference).
struct SampleBatch {
  uint32_t batch = 0;
  std::vector<float> labels, dense, weights;  // labels: [ModelInputs::labels][batch]
  std::vector<float> values;                  // NetInput::values, where the model has them
  std::vector<std::vector<float>> rows;       // per table
  std::vector<uint32_t> index, begin;         // TableInput::index of all tables, NetInput::begin
  uint32_t row_count = 0;
  uint64_t noise = 0;

  NetInput view() const;
};
SampleBatch make_sample(const Graph& graph, uint32_t batch, uint32_t row_count, uint64_t seed);

struct ReferenceResult {
  double loss_sum = 0;                           // of all heads, by their weights
  std::vector<std::vector<double>> values;       // of each node, [batch][width]
  std::vector<std::vector<double>> predictions;  // of each head, [batch]
};
// `rows` are the tables' rows in double; labels, dense and index come from the sample.
ReferenceResult run_reference(const Graph& graph, const SampleBatch& sample,
                              const std::vector<double>& parameters,
                              const std::vector<std::vector<double>>& rows);

struct CheckOptions {
  NetOptions net;
  uint32_t batch = 7;
  uint32_t row_count = 11;
  uint64_t seed = 1;
  double tolerance = 1e-4;    // of probabilities, and of each gradient's norm
  uint32_t coordinates = 60;  // derivatives taken per parameter and table
  bool same_predict = true;   // predict() does what train() does (no dropout, for example)
};
// "" when the Net agrees with the reference, else what differs first.
std::string check_net(std::shared_ptr<const Graph> graph, const CheckOptions& options);

// Builds a graph from specs; aborts if they are wrong. For tests and benchmarks.
std::shared_ptr<const Graph> must_build(const ModelInputs& inputs,
                                        const std::vector<NodeSpec>& nodes);
// The CTR-DNN of the benchmarks: 26 slots of `dim`, 13 dense, 400-400-400 relu, 1.
std::shared_ptr<const Graph> ctr_dnn_graph(uint32_t dim = 10);
// The DeepFM and the DCN-v2 of the benchmarks (examples/deepfm, examples/dcn_v2), over the same
// data.
std::shared_ptr<const Graph> deepfm_graph();
std::shared_ptr<const Graph> dcn_v2_graph();
// Logistic regression: sum of weights of the slots plus an fc of the dense features.
std::shared_ptr<const Graph> logistic_regression_graph();

}  // namespace flux
