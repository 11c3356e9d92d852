#include <gtest/gtest.h>

#include "flux/job/job.h"

namespace flux {
namespace {

std::vector<LabelRule> rules_of(const std::string& layers) {
  const auto job = parse_job("job.yaml", R"(data:
  format: feasign
  train: a.txt
  slots: [{name: user}]
  labels: [click, kind, price]
tables: [{name: t, dim: 4}]
model:
  layers:
    - {name: e, op: embedding, table: t}
    - {name: y, op: fc, inputs: e, units: 1}
    - {name: many, op: fc, inputs: e, units: 7}
    - {name: few, op: fc, inputs: e, units: 3}
)" + layers,
                             {});
  EXPECT_TRUE(job.is_ok()) << job.status().message();
  return job.value().data.label_rules;
}

using Rules = std::vector<LabelRule>;

TEST(LabelRules, LossesOfProbabilitiesNeedLabelsFromZeroToOne) {
  for (const char* op : {"logistic_loss", "focal_loss", "hinge_loss"})
    EXPECT_EQ((Rules{{0, 0}}),
              rules_of(fmt::format("    - {{name: l, op: {}, inputs: [y, click]}}\n"
                                   "    - {{name: a, op: softmax_cross_entropy, inputs: [many, "
                                   "click]}}\n"
                                   "    - {{name: b, op: mse_loss, inputs: [y, price]}}\n"
                                   "    - {{name: c, op: reduce_sum, inputs: few}}\n"
                                   "    - {{name: d, op: mse_loss, inputs: [c, price]}}\n",
                                   op)));
}

TEST(LabelRules, LossesOfClassesNeedTheNumberOfOneOfTheirLogits) {
  EXPECT_EQ((Rules{{1, 3}}),
            rules_of("    - {name: a, op: softmax_cross_entropy, inputs: [many, kind]}\n"
                     "    - {name: b, op: softmax_cross_entropy, inputs: [few, kind]}\n"
                     "    - {name: c, op: mse_loss, inputs: [y, price]}\n"));
}

}  // namespace
}  // namespace flux
