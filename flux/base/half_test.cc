// Every half-size number there and back, and the vector kernels against the scalar reference.
#include "flux/base/half.h"

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "flux/base/random.h"

namespace flux {
namespace {

std::vector<uint16_t> every_half() {
  std::vector<uint16_t> all(65536);
  std::iota(all.begin(), all.end(), uint16_t{0});
  return all;
}

bool same_bits(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

TEST(Half, EveryValueThereAndBack) {
  const std::vector<uint16_t> all = every_half();
  std::vector<float> fp16(all.size()), bf16(all.size());
  fp16_to_floats(all.data(), fp16.data(), all.size());
  bf16_to_floats(all.data(), bf16.data(), all.size());
  std::vector<uint16_t> fp16_back(all.size()), bf16_back(all.size());
  floats_to_fp16(fp16.data(), fp16_back.data(), all.size());
  floats_to_bf16(bf16.data(), bf16_back.data(), all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_TRUE(same_bits(fp16[i], float_of_fp16_scalar(all[i]))) << i;
    ASSERT_TRUE(same_bits(bf16[i], float_of_bf16_scalar(all[i]))) << i;
    ASSERT_EQ(fp16_back[i], fp16_scalar(fp16[i])) << i;
    if (std::isnan(fp16[i]) || std::isnan(bf16[i])) continue;  // NaN may turn quiet
    ASSERT_EQ(fp16_back[i], all[i]);
    ASSERT_EQ(bf16_back[i], all[i]);
  }
}

// The nearest of the two neighbours, found by trying both; ties go to the even one.
template <typename ToFloat>
uint16_t nearest(float value, ToFloat to_float) {
  const float size = std::fabs(value);
  uint16_t low = 0;
  for (uint16_t bit = 0x4000; bit != 0; bit = static_cast<uint16_t>(bit >> 1)) {
    const auto tried = static_cast<uint16_t>(low | bit);
    if (to_float(tried) <= size) low = tried;
  }
  const auto high = static_cast<uint16_t>(low + 1);
  const double down = double{size} - double{to_float(low)};
  const double up = double{to_float(high)} - double{size};
  const bool take_high = up < down || (up == down && (high & 1) == 0);
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  return static_cast<uint16_t>(sign | (take_high ? high : low));
}

TEST(Half, RoundsToNearestEvenLikeASearchAndBothKernelsAgree) {
  Random random(1);
  std::vector<float> values;
  for (int i = 0; i < 200000; ++i) {
    const auto any = std::bit_cast<float>(static_cast<uint32_t>(random.next()));
    values.push_back(any);
    values.push_back(static_cast<float>(random.normal()));
    // Exactly between two neighbours, and next to that.
    const auto half = static_cast<uint16_t>(random.below(0x7bff));
    const float middle = (float_of_fp16_scalar(half) +
                          float_of_fp16_scalar(static_cast<uint16_t>(half + 1))) / 2;
    values.push_back(middle);
    values.push_back(std::nextafter(middle, 1e9F));
    values.push_back(-std::nextafter(middle, -1e9F));
    const auto upper = static_cast<uint32_t>(random.below(0x7f7f));
    values.push_back(std::bit_cast<float>(upper << 16 | 0x8000U));
  }
  std::vector<uint16_t> fp16(values.size()), bf16(values.size());
  floats_to_fp16(values.data(), fp16.data(), values.size());
  floats_to_bf16(values.data(), bf16.data(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(fp16[i], fp16_scalar(values[i])) << values[i];
    ASSERT_EQ(bf16[i], bf16_scalar(values[i])) << values[i];
    if (!std::isfinite(values[i])) continue;
    if (std::fabs(values[i]) < 65504.0F) {
      ASSERT_EQ(fp16[i], nearest(values[i], float_of_fp16_scalar)) << values[i];
    }
    if (std::fabs(values[i]) < 3.38e38F) {
      ASSERT_EQ(bf16[i], nearest(values[i], float_of_bf16_scalar)) << values[i];
    }
  }
}

TEST(Half, ErrorBoundsAndTheEndsOfTheRange) {
  Random random(2);
  std::vector<float> values(10007), back(values.size());
  for (float& v : values) v = static_cast<float>((random.uniform() - 0.5) * 20);
  std::vector<uint16_t> half(values.size());
  floats_to_fp16(values.data(), half.data(), values.size());
  fp16_to_floats(half.data(), back.data(), values.size());
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_LE(std::fabs(back[i] - values[i]), std::fabs(values[i]) * 0x1p-11F + 0x1p-25F);
  floats_to_bf16(values.data(), half.data(), values.size());
  bf16_to_floats(half.data(), back.data(), values.size());
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_LE(std::fabs(back[i] - values[i]), std::fabs(values[i]) * 0x1p-8F);

  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> ends = {1e6F, -1e6F, 65519.0F, infinity, -infinity, NAN, 0.0F, -0.0F};
  std::vector<float> got(8);
  std::vector<uint16_t> h(8);
  floats_to_fp16(ends.data(), h.data(), 8);
  fp16_to_floats(h.data(), got.data(), 8);
  EXPECT_EQ(got[0], 65504.0F);
  EXPECT_EQ(got[1], -65504.0F);
  EXPECT_EQ(got[2], 65504.0F);
  EXPECT_EQ(got[3], infinity);
  EXPECT_EQ(got[4], -infinity);
  EXPECT_TRUE(std::isnan(got[5]));
  EXPECT_TRUE(same_bits(got[6], 0.0F));
  EXPECT_TRUE(same_bits(got[7], -0.0F));
  floats_to_bf16(ends.data(), h.data(), 8);  // the scalar tail
  EXPECT_EQ(h[3], 0x7f80);
  EXPECT_TRUE(std::isnan(float_of_bf16_scalar(h[5])));
}

}  // namespace
}  // namespace flux
