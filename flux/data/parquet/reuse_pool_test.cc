#include "flux/data/parquet/reuse_pool.h"

#include <gtest/gtest.h>

namespace flux {
namespace {

TEST(ReusePool, SoManyWaitToBeUsedAgain) {
  int made = 0;
  auto pool = std::make_shared<ReusePool<int>>([&] { return std::make_unique<int>(made++); }, 2);
  {
    const auto a = pool->take(), b = pool->take(), c = pool->take();
    EXPECT_EQ(*a + *b + *c, 0 + 1 + 2);
  }
  const auto a = pool->take(), b = pool->take();
  EXPECT_EQ(made, 3) << "both were used before";
  const auto c = pool->take();
  EXPECT_EQ(*c, 3) << "one of three was not kept";
}

TEST(ReusePool, WhatIsTakenOutlivesItsOwner) {
  auto pool = std::make_shared<ReusePool<int>>([] { return std::make_unique<int>(7); }, 1);
  const auto taken = pool->take();
  pool.reset();
  EXPECT_EQ(*taken, 7);
}

}  // namespace
}  // namespace flux
