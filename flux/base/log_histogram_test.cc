#include "flux/base/log_histogram.h"

#include <gtest/gtest.h>

#include "flux/base/random.h"

namespace flux {
namespace {

using Ages = LogHistogram<0>;

TEST(LogHistogram, SmallValuesHaveBucketsOfTheirOwn) {
  for (uint64_t value = 0; value < 16; ++value) {
    Ages one;
    one.add(value);
    EXPECT_EQ(one.quantile(1), static_cast<double>(value));
    Ages both = one;
    both.add(value + 1);
    EXPECT_EQ(both.count(), 2U);
    // Half of the values are below where the bucket of the lesser one ends.
    EXPECT_LE(both.quantile(0.5), static_cast<double>(value + 1)) << value;
    EXPECT_GE(both.quantile(0.5), static_cast<double>(value)) << value;
  }
}

TEST(LogHistogram, QuantilesOfAKnownSpread) {
  Ages ages;
  for (uint64_t age = 1; age <= 100'000; ++age) ages.add(age);
  for (const double share : {0.01, 0.5, 0.9, 0.99})
    EXPECT_NEAR(ages.quantile(share), share * 100'000, share * 100'000 / 8) << share;
  EXPECT_EQ(ages.max(), 100'000U);
  EXPECT_EQ(ages.quantile(1), 100'000.0);
}

TEST(LogHistogram, HugeValuesLandInTheLastBucket) {
  Ages ages;
  ages.add(~0ULL);
  EXPECT_EQ(ages.counts().size(), Ages::kBuckets);
  EXPECT_EQ(ages.max(), ~0ULL);
}

}  // namespace
}  // namespace flux
