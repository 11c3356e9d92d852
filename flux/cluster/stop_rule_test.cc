#include "flux/cluster/stop_rule.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "flux/base/random.h"

namespace flux {
namespace {

StopOptions options(const char* metric, double min_delta, uint32_t patience) {
  StopOptions out;
  out.metric = metric;
  out.min_delta = min_delta;
  out.patience = patience;
  return out;
}

TEST(StopRule, WaitsForPatienceLooksInARow) {
  StopRule rule(options("auc", 0.01, 2));
  EXPECT_TRUE(rule.look(0.70));
  EXPECT_FALSE(rule.look(0.705));  // better, but by too little
  EXPECT_TRUE(rule.look(0.72));
  EXPECT_FALSE(rule.look(0.71));
  EXPECT_FALSE(rule.converged());
  EXPECT_FALSE(rule.look(0.725));
  EXPECT_TRUE(rule.converged());
  EXPECT_EQ(rule.best(), 0.72);
}

TEST(StopRule, LossesFall) {
  StopRule rule(options("log_loss", 0, 1));
  EXPECT_TRUE(rule.look(0.5));
  EXPECT_TRUE(rule.look(0.4));
  EXPECT_FALSE(rule.look(0.4));
  EXPECT_TRUE(rule.converged());
}

// Against a plain search for the first look from which the best of all before was not beaten.
TEST(StopRule, AgreesWithASearchThroughAllValues) {
  Random random(7);
  for (int round = 0; round < 2000; ++round) {
    const double delta = static_cast<double>(random.below(3)) * 0.05;
    const auto patience = static_cast<uint32_t>(1 + random.below(4));
    std::vector<double> values(20);
    for (double& value : values) value = static_cast<double>(random.below(100)) * 0.01;
    StopRule rule(options("auc", delta, patience));
    size_t stopped = values.size();
    for (size_t i = 0; i < values.size() && stopped == values.size(); ++i) {
      rule.look(values[i]);
      if (rule.converged()) stopped = i;
    }
    size_t expected = values.size();
    for (size_t best = 0, i = 1; i < values.size() && expected == values.size(); ++i) {
      if (values[i] > values[best] + delta) best = i;
      if (i - best >= patience) expected = i;
    }
    ASSERT_EQ(stopped, expected) << "round " << round;
  }
}

}  // namespace
}  // namespace flux
