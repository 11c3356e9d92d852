#include "flux/optimizer/settings.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "flux/optimizer/optimizer.h"

namespace flux {
namespace {

using O = OptimizerOptions;

std::string refusal(const O& options) {
  const auto made = make_optimizer(options);
  EXPECT_FALSE(made.is_ok());
  if (made.is_ok()) return "";
  EXPECT_EQ(made.status().code(), Code::kInvalid);
  return made.status().message();
}

TEST(OptimizerOptionsTest, RangesAreNamed) {
  EXPECT_EQ(refusal({.lr = 0}), "optimizer.lr is 0; it must be a number > 0");
  EXPECT_EQ(refusal({.lr = NAN}), "optimizer.lr is nan; it must be a number > 0");
  EXPECT_EQ(refusal({.initial_accumulator = -1.0F}),
            "optimizer.initial_accumulator is -1; it must be a number >= 0");
  EXPECT_EQ(refusal({.epsilon = INFINITY}),
            "optimizer.epsilon is inf; it must be a number in (0, 1]");
  EXPECT_EQ(refusal({.rule = "adam", .beta1 = 1.0F}),
            "optimizer.beta1 is 1; it must be a number in [0, 1)");
  EXPECT_EQ(refusal({.rule = "adam", .beta2 = -0.5F}),
            "optimizer.beta2 is -0.5; it must be a number in [0, 1)");
  EXPECT_EQ(refusal({.clip = 0.0F}), "optimizer.clip is 0; it must be a number > 0");
  EXPECT_EQ(
      refusal({.rule = "adagrad_shared", .initial_accumulator = 0.0F}),
      "optimizer.initial_accumulator is 0; adagrad_shared divides by it and needs it above 0");
  EXPECT_EQ(refusal({.weight_min = 2.0F, .weight_max = 1.0F}),
            "optimizer.weight_min 2 is above optimizer.weight_max 1");
  EXPECT_EQ(refusal({.rule = "adagard"}),
            "optimizer.rule 'adagard' is not known; choose one of sgd, momentum, adagrad, "
            "adagrad_shared, adam, adam_shared, adamw, ftrl, group_ftrl, rmsprop, sum, summary, "
            "did you mean 'adagrad'?");
}

TEST(OptimizerOptionsTest, ASettingOfAnotherRuleIsRefused) {
  EXPECT_EQ(refusal({.rule = "adagrad", .beta1 = 0.5F}),
            "optimizer.beta1 is not used by the rule adagrad; it is a setting of adam, "
            "adam_shared, adamw");
  EXPECT_EQ(refusal({.rule = "sgd", .nesterov = false}),
            "optimizer.nesterov is not used by the rule sgd; it is a setting of momentum");
  EXPECT_EQ(refusal({.rule = "adamw", .l2 = 0.1F}),
            "optimizer.l2 is not used by the rule adamw; it is a setting of sgd, momentum, "
            "adagrad, adagrad_shared, adam, adam_shared, ftrl, group_ftrl, rmsprop");
  EXPECT_EQ(refusal({.rule = "summary", .weight_max = 1.0F}).substr(0, 60),
            "optimizer.weight_max is not used by the rule summary; it is ");
}

TEST(OptimizerOptionsTest, EveryRuleIsMadeFromItsDefaults) {
  for (const std::string& rule : optimizer_rules())
    EXPECT_TRUE(make_optimizer({.rule = rule}).is_ok()) << rule;
}

TEST(OptimizerSettingsTest, EachSaysWhoUsesItAndItsDefaults) {
  for (const OptimizerSetting& setting : optimizer_settings()) {
    EXPECT_FALSE(setting.rules().empty()) << setting.name;
    EXPECT_EQ(find_optimizer_setting(setting.name), &setting);
  }
  EXPECT_EQ(find_optimizer_setting("decay")->defaults(), "0.99 (rmsprop), 0.9999999 (summary)");
  EXPECT_EQ(find_optimizer_setting("clip")->defaults(), "none");
  EXPECT_EQ(find_optimizer_setting("epsilon")->defaults(), "1e-08");
  EXPECT_EQ(find_optimizer_setting("lr")->rules().size(), optimizer_rules().size() - 2);
  EXPECT_FALSE(uses_setting("summary", *find_optimizer_setting("lr")));
}

}  // namespace
}  // namespace flux
