#include "flux/nn/summary_check.h"

#include <cmath>

#include "flux/nn/reference.h"

namespace flux {
namespace {

constexpr uint32_t kBatch = 5, kWidth = 3;

// Where the first of the three summaries begins in the flat vector.
size_t first_summary(const Graph& graph) {
  for (const Parameter& parameter : graph.parameters())
    if (parameter.update == UpdateKind::kSummary) return parameter.offset;
  FLUX_CHECK(false, "the operator has no summaries");
}

std::string differs(const char* what, size_t column, double wanted, double got) {
  if (std::fabs(wanted - got) <= 1e-5) return "";
  return fmt::format("{} of column {}: {} wanted, {} pushed\n", what, column, wanted, got);
}

}  // namespace

std::string check_summaries(const std::string& op, double epsilon) {
  const auto graph = must_build({0, kWidth, {}}, {{"y", op, {"dense"}, {}, ""},
                                                  {"z", "fc", {"y"}, {{"units", int64_t{1}}}, ""},
                                                  {"l", "logistic_loss", {"z", "label"}, {}, ""}});
  const SampleBatch sample = make_sample(*graph, kBatch, 1, 3);
  auto net = Net::compile(graph, {}).value();
  const std::vector<float> flat = graph->initial_parameters(1);
  net->set_parameters(flat.data());
  std::vector<float> pushed(flat.size());
  NetGradients gradients{pushed.data(), {}};
  net->train(sample.view(), &gradients, nullptr);
  const float* summaries = pushed.data() + first_summary(*graph);
  std::string problem;
  for (size_t c = 0; c < kWidth; ++c) {
    double sum = 0, squares = 0;
    for (size_t b = 0; b < kBatch; ++b) {
      const double x = static_cast<double>(sample.dense[b * kWidth + c]);
      sum += x;
      squares += x * x + epsilon;
    }
    const auto got = [&](size_t i) { return static_cast<double>(summaries[i * kWidth + c]); };
    problem += differs("count", c, kBatch, got(0)) + differs("sum", c, sum, got(1)) +
               differs("squares", c, squares, got(2));
  }
  return problem;
}

float predicted_by_summaries(const std::string& op, float x, float mean, float variance) {
  const auto graph = must_build(
      {0, 1, {}}, {{"y", op, {"dense"}, {}, ""}, {"l", "mse_loss", {"y", "label"}, {}, ""}});
  std::vector<float> flat = graph->initial_parameters(1);
  float* summaries = flat.data() + first_summary(*graph);
  summaries[0] = 10;
  summaries[1] = 10 * mean;
  summaries[2] = 10 * (variance + mean * mean);
  auto net = Net::compile(graph, {}).value();
  net->set_parameters(flat.data());
  SampleBatch sample = make_sample(*graph, 1, 1, 3);
  sample.dense[0] = x;
  float prediction = 0;
  net->predict(sample.view(), &prediction);
  return prediction;
}

}  // namespace flux
