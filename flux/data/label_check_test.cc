#include "flux/data/label_check.h"

#include <cmath>

#include <gtest/gtest.h>

namespace flux {
namespace {

Batch labelled(std::vector<float> labels) {
  Batch batch;
  batch.size = static_cast<uint32_t>(labels.size());
  batch.labels = std::move(labels);
  return batch;
}

std::string refusal(std::vector<float> labels, LabelRule rule) {
  const auto wrong = find_wrong_label(labelled(std::move(labels)), {rule});
  return wrong ? std::to_string(wrong->example) + ": " + wrong->text({"click"}) : "";
}

TEST(LabelCheck, ClassesAreWholeNumbersBelowTheirCount) {
  const LabelRule rule{0, 3};
  const std::string rest =
      ", but its loss needs the number of one of 3 classes, from 0 to 2; give its logits more "
      "units, or mend the data";
  EXPECT_EQ("", refusal({0, 1, 2}, rule));
  EXPECT_EQ("3: label 'click' is 3" + rest, refusal({0, 1, 2, 3}, rule));
  EXPECT_EQ("0: label 'click' is -1" + rest, refusal({-1, 1}, rule));
  EXPECT_EQ("1: label 'click' is 0.5" + rest, refusal({0, 0.5F}, rule));
  EXPECT_EQ("0: label 'click' is nan" + rest, refusal({std::nanf("")}, rule));
}

TEST(LabelCheck, ProbabilitiesAreFromZeroToOne) {
  EXPECT_EQ("", refusal({0, 0.5F, 1}, {0, 0}));
  EXPECT_EQ(
      "1: label 'click' is -1, but its loss needs 0, 1 or a probability between; where -1 means 0, "
      "set data.minus_one_is_zero (libsvm, libffm, vw, csv)",
      refusal({0, -1}, {0, 0}));
}

}  // namespace
}  // namespace flux
