#include "flux/cluster/skip_limit.h"

#include <cmath>

#include <gtest/gtest.h>

namespace flux {
namespace {

TEST(SkipLimit, IsAShareOfThePassAndAtLeastOneBatch) {
  EXPECT_EQ(skips_allowed(0, 0.001), 1U);
  EXPECT_EQ(skips_allowed(100, 0.001), 1U);
  EXPECT_EQ(skips_allowed(1999, 0.001), 1U);
  EXPECT_EQ(skips_allowed(2000, 0.001), 2U);
  EXPECT_EQ(skips_allowed(7000, 0.001), 7U);
  EXPECT_EQ(skips_allowed(300, 0.01), 3U) << "0.01 is not exact in binary";
  EXPECT_EQ(skips_allowed(10, 1), 10U);
  EXPECT_EQ(skips_allowed(10, 7), 10U);
  EXPECT_EQ(skips_allowed(1'000'000, 0), 0U) << "none at all";
  EXPECT_EQ(skips_allowed(10, std::nan("")), 0U);
}

TEST(SkipLimit, TheOneTooManyEndsTheJobWithItsReason) {
  EXPECT_TRUE(check_skips(1, 100, 0.001, "x").is_ok());
  EXPECT_TRUE(check_skips(2, 2000, 0.001, "x").is_ok());
  const Status status = check_skips(3, 2000, 0.001, "batch 7: the loss is nan");
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_EQ(status.message(),
            "3 of the 2000 batches of this pass had to be skipped, 2 may be (skip_limit 0.001); "
            "the last: batch 7: the loss is nan\nlook at that data, lower the learning rate if "
            "gradients are not finite, or raise skip_limit");
  EXPECT_EQ(check_skips(1, 100, 0, "x").code(), Code::kInvalid);
}

}  // namespace
}  // namespace flux
