#include "flux/data/log1p.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace flux {
namespace {

TEST(Log1p, IsNearTheLibraryOverTheWholeRange) {
  std::vector<float> x = {0.0F,        std::numeric_limits<float>::denorm_min(), 1.0F, 0.4142135F,
                          0.41421357F, std::numeric_limits<float>::max()};
  for (uint32_t bits = 1; bits < 0x7f800000U; bits += 4099) x.push_back(std::bit_cast<float>(bits));
  std::vector<float> y = x;
  log1p_relu(y);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = std::log1p(static_cast<double>(x[i]));
    if (want == 0) {
      ASSERT_EQ(y[i], 0.0F);
      continue;
    }
    // One unit of the last place of a denormal is more than the relative bound.
    const double error = std::abs(y[i] - want) - std::numeric_limits<float>::denorm_min();
    worst = std::max(worst, error / want);
    ASSERT_LT(error / want, 4e-7) << x[i];
  }
  EXPECT_GT(worst, 0);
}

TEST(Log1p, NegativeIsZero) {
  std::vector<float> x = {-0.0F, -1.0F, -3.0e38F};
  log1p_relu(x);
  for (const float v : x) EXPECT_EQ(v, 0.0F);
}

TEST(Log1p, EveryLengthGivesTheSameBits) {
  std::vector<float> whole;
  for (int i = 0; i < 40; ++i) whole.push_back(0.37F * static_cast<float>(i));
  const std::vector<float> input = whole;
  log1p_relu(whole);
  for (size_t n = 0; n <= input.size(); ++n) {
    std::vector<float> part(input.begin(), input.begin() + static_cast<ptrdiff_t>(n));
    log1p_relu(part);
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(part[i], whole[i]);
  }
}

}  // namespace
}  // namespace flux
