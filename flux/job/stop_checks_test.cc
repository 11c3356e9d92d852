// Which loss a stop condition means, where several networks have losses. What is refused is in
// tests/bad_jobs/stop_*.yaml.
#include <gtest/gtest.h>

#include "flux/job/job.h"

namespace flux {
namespace {

// The phase whose metric is looked at, or the first line of the refusal.
std::string phase_meant(const std::string& stop) {
  const std::string text = "stop: {metric: auc, " + stop + R"(}
data: {train: a.tsv, test: b.tsv}
tables:
  - {name: t, dim: 1}
phases:
  - name: first
    layers:
      - {name: x, op: embedding, table: t, combine: sum}
      - {name: click, op: logistic_loss, inputs: [x, label]}
  - name: second
    layers:
      - {name: x, op: embedding, table: t, combine: sum}
      - {name: click, op: logistic_loss, inputs: [x, label]}
      - {name: buy, op: mse_loss, inputs: [x, label]}
)";
  const Result<Job> job = parse_job("job.yaml", text, {});
  if (job.is_ok()) return job.value().stop.phase;
  return job.status().message().substr(0, job.status().message().find('\n'));
}

TEST(StopChecks, ANamedHeadSaysThePhase) {
  EXPECT_EQ(phase_meant("patience: 1"), "");
  EXPECT_EQ(phase_meant("head: buy"), "second");
  EXPECT_EQ(phase_meant("head: click"), "first");
  EXPECT_EQ(phase_meant("head: click, phase: second"), "second");
  EXPECT_EQ(phase_meant("head: buy, phase: first"), "job.yaml:1:21: there is no loss 'buy'");
}

}  // namespace
}  // namespace flux
