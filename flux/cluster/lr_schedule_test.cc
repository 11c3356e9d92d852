#include "flux/cluster/lr_schedule.h"

#include <cmath>

#include <gtest/gtest.h>

namespace flux {
namespace {

LrSchedule make(const LrScheduleOptions& options) {
  const Status status = check_lr_schedule(options);
  EXPECT_TRUE(status.is_ok()) << status.message();
  return LrSchedule(options);
}

TEST(LrSchedule, AConstantRateIsExactlyOne) {
  const LrSchedule schedule;
  for (const uint64_t position : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 60})
    EXPECT_EQ(schedule.factor(position), 1.0F);
}

TEST(LrSchedule, WarmsUpAlongALine) {
  const LrSchedule schedule = make({.kind = "constant", .warmup_batches = 4});
  const float wanted[] = {0.25F, 0.5F, 0.75F, 1.0F, 1.0F, 1.0F};
  for (uint64_t i = 0; i < 6; ++i) EXPECT_EQ(schedule.factor(i), wanted[i]) << i;
}

TEST(LrSchedule, LinearAndCosineEndWhereTheySay) {
  const LrSchedule linear =
      make({.kind = "linear", .warmup_batches = 10, .batches = 100, .end = 0.2});
  EXPECT_EQ(linear.factor(10), 1.0F);
  EXPECT_FLOAT_EQ(linear.factor(60), 0.6F);
  EXPECT_FLOAT_EQ(linear.factor(110), 0.2F);
  EXPECT_FLOAT_EQ(linear.factor(1'000'000), 0.2F);
  const LrSchedule cosine = make({.kind = "cosine", .batches = 100, .end = 0.2});
  EXPECT_EQ(cosine.factor(0), 1.0F);
  EXPECT_FLOAT_EQ(cosine.factor(50), 0.6F);
  EXPECT_FLOAT_EQ(cosine.factor(25), static_cast<float>(0.2 + 0.4 * (1 + std::sqrt(0.5))));
  EXPECT_FLOAT_EQ(cosine.factor(100), 0.2F);
  EXPECT_FLOAT_EQ(cosine.factor(5000), 0.2F);
}

TEST(LrSchedule, ExponentialAndStepMultiplyByTheirRate) {
  const LrSchedule smooth = make({.kind = "exponential", .batches = 100, .rate = 0.25});
  EXPECT_FLOAT_EQ(smooth.factor(50), 0.5F);
  EXPECT_FLOAT_EQ(smooth.factor(200), 0.0625F);
  const LrSchedule step = make({.kind = "step", .batches = 100, .rate = 0.25, .end = 0.1});
  EXPECT_EQ(step.factor(99), 1.0F);
  EXPECT_FLOAT_EQ(step.factor(100), 0.25F);
  EXPECT_FLOAT_EQ(step.factor(199), 0.25F);
  EXPECT_FLOAT_EQ(step.factor(200), 0.1F) << "not below its end";
}

TEST(LrSchedule, InverseSqrtGoesOnFromTheWarmup) {
  const LrSchedule schedule = make({.kind = "inverse_sqrt", .warmup_batches = 100});
  EXPECT_FLOAT_EQ(schedule.factor(49), 0.5F);
  EXPECT_EQ(schedule.factor(100), 1.0F);
  EXPECT_FLOAT_EQ(schedule.factor(400), 0.5F);
}

TEST(LrSchedule, TheRateNeverVanishes) {
  const LrSchedule schedule = make({.kind = "linear", .batches = 10});
  EXPECT_EQ(schedule.factor(10), static_cast<float>(LrSchedule::kMin));
  EXPECT_EQ(schedule.factor(UINT64_MAX), static_cast<float>(LrSchedule::kMin));
}

TEST(LrSchedule, WhatCannotBeIsNamed) {
  const auto message = [](const LrScheduleOptions& o) { return check_lr_schedule(o).message(); };
  EXPECT_EQ(message({.kind = "cosin"}),
            "lr_schedule.kind 'cosin' is not known; choose one of constant, linear, cosine, "
            "exponential, step, inverse_sqrt, did you mean 'cosine'?");
  EXPECT_EQ(message({.kind = "linear"}),
            "lr_schedule.batches is needed for kind linear: after how many batches the end is "
            "reached");
  EXPECT_EQ(message({.kind = "step"}),
            "lr_schedule.batches is needed for kind step: after how many batches one `rate` is "
            "applied");
  EXPECT_EQ(message({.kind = "step", .batches = 1, .rate = 0}),
            "lr_schedule.rate is 0; it must be a number in (0, 1]");
  EXPECT_EQ(message({.kind = "cosine", .batches = 1, .end = NAN}),
            "lr_schedule.end is nan; it must be a number in [0, 1]");
}

}  // namespace
}  // namespace flux
