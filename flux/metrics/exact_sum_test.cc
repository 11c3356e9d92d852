#include "flux/metrics/exact_sum.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "flux/base/random.h"

namespace flux {
namespace {

TEST(ExactSum, KeepsWhatADoubleSumLoses) {
  ExactSum sum;
  for (const double v : {1e300, 1.0, 0x1p-1074, -1e300, -1.0}) sum.add(v);
  EXPECT_EQ(sum.value(), 0x1p-1074);
  sum.add(-0x1p-1074);
  EXPECT_EQ(sum.value(), 0);
  sum.add(-2.5);
  EXPECT_EQ(sum.value(), -2.5);
}

TEST(ExactSum, RoundsOnceToTheNearest) {
  ExactSum sum;
  sum.add(1);
  sum.add(0x1p-53);  // half a step above 1: to even
  EXPECT_EQ(sum.value(), 1);
  sum.add(0x1p-1000);  // more than half
  EXPECT_EQ(sum.value(), 1 + 0x1p-52);
}

TEST(ExactSum, IntegersAreExactAndOrderDoesNotMatter) {
  Random random(3);
  std::vector<double> values;
  int64_t expected = 0;  // in units of 2^-30
  for (int i = 0; i < 5000; ++i) {
    const auto units = static_cast<int64_t>(random.below(1ULL << 40)) - (1LL << 39);
    values.push_back(std::ldexp(static_cast<double>(units), -30));
    expected += units;
  }
  ExactSum forward, backward, left, right;
  for (const double v : values) forward.add(v);
  std::reverse(values.begin(), values.end());
  for (const double v : values) backward.add(v);
  for (size_t i = 0; i < values.size(); ++i) (i % 3 == 0 ? left : right).add(values[i]);
  left.merge(right);
  EXPECT_EQ(forward.value(), std::ldexp(static_cast<double>(expected), -30));
  EXPECT_EQ(backward.value(), forward.value());
  EXPECT_EQ(left.value(), forward.value());
}

TEST(ExactSum, ManyMergesDoNotOverflow) {
  ExactSum sum, one;
  one.add(0.1);
  one.add(-0.3);
  for (int i = 0; i < 10000; ++i) sum.merge(one);
  EXPECT_NEAR(sum.value(), -2000, 1e-9);
}

TEST(ExactSum, TravelsAsBytes) {
  Random random(9);
  for (int round = 0; round < 200; ++round) {
    ExactSum sum, back, shuffled;
    std::vector<double> values;
    for (uint64_t n = random.below(6); n > 0; --n)
      values.push_back(std::ldexp(random.normal(), static_cast<int>(random.below(400)) - 200));
    for (const double v : values) sum.add(v);
    for (size_t i = values.size(); i > 0; --i) shuffled.add(values[i - 1]);
    ByteWriter out, other;
    sum.put(&out);
    shuffled.put(&other);
    const std::string bytes = out.take();
    EXPECT_EQ(bytes, other.take());
    ByteReader in(bytes);
    ASSERT_TRUE(back.get(&in));
    EXPECT_EQ(in.left(), 0U);
    EXPECT_EQ(back.value(), sum.value());
    for (size_t cut = 0; cut < bytes.size(); ++cut) {
      ByteReader less(std::string_view(bytes).substr(0, cut));
      EXPECT_FALSE(back.get(&less));
    }
  }
}

}  // namespace
}  // namespace flux
