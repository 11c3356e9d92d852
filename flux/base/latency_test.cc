#include "flux/base/latency.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "flux/base/random.h"

namespace flux {
namespace {

// Against the sorted times themselves.
TEST(Latency, QuantilesAreThoseOfTheTimes) {
  LatencyHistogram histogram;
  Random random(7);
  std::vector<double> ms;
  for (int i = 0; i < 20000; ++i) {
    const double one = 0.02 * std::exp(random.uniform() * 10);  // 0.02 ms to 440 ms
    ms.push_back(one);
    histogram.add(static_cast<TimeNs>(one * 1e6));
  }
  std::sort(ms.begin(), ms.end());
  EXPECT_EQ(histogram.count(), ms.size());
  for (const double share : {0.01, 0.5, 0.9, 0.99, 0.999}) {
    const double right = ms[static_cast<size_t>(share * static_cast<double>(ms.size() - 1))];
    EXPECT_NEAR(histogram.quantile_ms(share), right, right / 8) << share;
  }
  EXPECT_NEAR(histogram.max_ms(), ms.back(), 1e-5);
  EXPECT_LE(histogram.quantile_ms(1), histogram.max_ms());
}

TEST(Latency, WhatIsOutsideLandsAtTheEnds) {
  LatencyHistogram histogram;
  EXPECT_EQ(histogram.quantile_ms(0.5), 0);
  histogram.add(-5);
  histogram.add(0);
  histogram.add(kSecond * 3600);
  EXPECT_EQ(histogram.count(), 3U);
  EXPECT_LT(histogram.quantile_ms(0.5), 0.01);
  EXPECT_EQ(histogram.quantile_ms(1), 3600e3);
}

TEST(Latency, SumsDifferencesAndTheWire) {
  LatencyHistogram one, other, both;
  for (int i = 1; i < 300; ++i) {
    const TimeNs took = TimeNs{i} * i * 1000;
    (i % 3 == 0 ? one : other).add(took);
    both.add(took);
  }
  const LatencyHistogram carried = LatencyHistogram::of(one.counts(), one.max_ns());
  EXPECT_EQ(carried, one);
  LatencyHistogram sum = carried;
  sum.merge(other);
  EXPECT_EQ(sum, both);
  sum.subtract(one);
  EXPECT_EQ(sum.counts(), other.counts());
  const std::vector<uint64_t> hostile(LatencyHistogram::kBuckets + 50, 1);
  EXPECT_EQ(LatencyHistogram::of(hostile, -1).count(), LatencyHistogram::kBuckets);
}

}  // namespace
}  // namespace flux
