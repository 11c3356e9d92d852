#include "flux/job/dense_memory.h"

#include <gtest/gtest.h>

namespace flux {
namespace {

std::string job_text(const char* units, const char* rule = "adam") {
  return fmt::format(R"(data:
  train: a.tsv
dense_optimizer: {{rule: {}}}
model:
  layers:
    - {{name: h, op: fc, inputs: dense, units: 100}}
    - {{name: wide, op: fc, inputs: h, units: {}}}
    - {{name: y, op: fc, inputs: wide, units: 1}}
    - {{name: loss, op: logistic_loss, inputs: [y, label]}}
)",
                     rule, units);
}
Job parse(const std::string& text) {
  Result<Job> job = parse_job("job.yaml", text, {});
  EXPECT_TRUE(job.is_ok()) << job.status().message();
  return std::move(job).value();
}

// 13 * 100 + 100, 100 * 50 + 50, 50 + 1 parameters.
TEST(DenseMemory, CountsWeightsGradientsAndState) {
  const uint64_t parameters = 1400 + 5050 + 51;
  const Job sgd = parse(job_text("50", "sgd"));
  const auto graphs = build_graphs(sgd, features_of(sgd.data));
  EXPECT_EQ(parameters * 8, dense_bytes(sgd, graphs.value()));
  const Job adagrad = parse(job_text("50", "adagrad"));
  EXPECT_EQ(parameters * 12, dense_bytes(adagrad, graphs.value()));
}

TEST(DenseMemory, RefusesWhatDoesNotFitAndNamesTheLargestLayer) {
  const Job job = parse(job_text("50", "sgd"));
  const auto graphs = build_graphs(job, features_of(job.data));
  EXPECT_TRUE(check_dense_memory(job, graphs.value(), 6501 * 8).is_ok());
  EXPECT_EQ(
      "job.yaml:7:7: node 'wide' (fc): has 5,050 of the model's 6,501 dense parameters: with "
      "gradients and the optimizer's state they need 50.8 KiB, and there are 10.0 KiB of memory; "
      "make it smaller",
      check_dense_memory(job, graphs.value(), 10240).message());
}

TEST(DenseMemory, NoMachineHasMemoryForMore) {
  const Job job = parse(R"(data:
  train: a.tsv
tables: [{name: t, dim: 8}]
model:
  layers:
    - {name: e, op: embedding, table: t}
    - {name: c1, op: cin, inputs: [e, e], units: 4096}
    - {name: c2, op: cin, inputs: [c1, c1], units: 4096}
    - {name: x, op: reduce_sum, inputs: c2}
    - {name: y, op: fc, inputs: x, units: 1}
    - {name: loss, op: logistic_loss, inputs: [y, label]}
)");
  const auto graphs = build_graphs(job, features_of(job.data));
  ASSERT_FALSE(graphs.is_ok());
  EXPECT_TRUE(graphs.status().message().starts_with(
      "job.yaml:8:7: node 'c2' (cin): has 68,719,476,736 of the model's "))
      << graphs.status().message();
}

}  // namespace
}  // namespace flux
