#include "flux/nn/live_columns.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "flux/base/random.h"
#include "flux/nn/net_memory.h"

namespace flux {
namespace {

class LiveColumnsTest : public testing::TestWithParam<DType> {
 protected:
  // Numbers that bf16 has, so that both types can be compared exactly.
  Tensor matrix(uint32_t rows, uint32_t width, const std::set<uint32_t>& dead) {
    const uint32_t stride = (width + 31) / 32 * 32 + 32;
    Tensor t{memory_.allocate(static_cast<size_t>(stride) * rows * dtype_size(GetParam())), width,
             stride, GetParam()};
    std::vector<float> row(width);
    for (uint32_t r = 0; r < rows; ++r) {
      for (uint32_t c = 0; c < width; ++c) {
        row[c] = static_cast<float>(random_.below(200)) - 100;
        if (dead.contains(c)) row[c] = r % 2 == 0 ? 0.0F : -0.0F;
      }
      write_row(t, r, row.data(), false);
    }
    return t;
  }
  static float at(const Tensor& t, uint32_t r, uint32_t c) {
    return t.type == DType::kF32 ? t.f32(r)[c] : bf16_to_float(t.bf16(r)[c]);
  }
  // As a team does it: in parts, with rows of any count at the end.
  static void look(LiveColumns* live, const Tensor& t, uint32_t rows) {
    constexpr uint32_t kPart = 64;
    std::vector<uint32_t> bits(static_cast<size_t>(rows / kPart + 1) * live->words(), ~0U);
    uint32_t parts = 0;
    for (uint32_t first = 0; first < rows; first += kPart, ++parts)
      live->mark(t, first, std::min(rows, first + kPart), bits.data() + parts * live->words());
    live->take(bits.data(), parts);
  }
  NetMemory memory_;
  Random random_{7};
};

TEST_P(LiveColumnsTest, FindSqueezeAndSpread) {
  for (const uint32_t width : {1U, 15U, 16U, 17U, 31U, 32U, 33U, 64U, 100U, 273U, 400U}) {
    for (const uint32_t rows : {1U, 2U, 63U, 64U, 65U, 130U}) {
      std::set<uint32_t> dead;
      for (uint32_t c = 0; c < width; ++c)
        if (random_.below(3) == 0) dead.insert(c);
      const Tensor t = matrix(rows, width, dead);
      std::vector<uint32_t> wanted;  // by a plain look at all numbers
      for (uint32_t c = 0; c < width; ++c) {
        bool any = false;
        for (uint32_t r = 0; r < rows; ++r) any = any || at(t, r, c) != 0;
        if (any) wanted.push_back(c);
      }
      if ((width - wanted.size()) * 8 < width) continue;  // counted as all live
      LiveColumns live(width, 8);
      look(&live, t, rows);
      ASSERT_EQ(live.count(), wanted.size()) << width << " x " << rows;
      for (uint32_t i = 0; i < live.count(); ++i) ASSERT_EQ(live.column(i), wanted[i]);
      const Tensor few{memory_.allocate(LiveColumns::bytes(width, rows, GetParam())), live.count(),
                       live.stride(), GetParam()};
      // The later rows first: the earlier ones must leave them alone.
      live.squeeze_rows(t, rows / 2, rows, few);
      live.squeeze_rows(t, 0, rows / 2, few);
      const Tensor back = matrix(rows, width, {});
      const float behind = 3;
      for (uint32_t r = 0; r < rows; ++r) write_row(slice(back, width, 1), r, &behind, false);
      live.spread(few, rows, back);
      for (uint32_t r = 0; r < rows; ++r) {
        for (uint32_t i = 0; i < few.stride; ++i)
          ASSERT_EQ(at(few, r, i), i < few.width ? at(t, r, wanted[i]) : 0) << r << "," << i;
        for (uint32_t c = 0; c < width; ++c)
          ASSERT_EQ(at(back, r, c), at(t, r, c)) << r << "," << c;
        ASSERT_EQ(at(back, r, width), behind) << "what lies behind is not ours";
      }
    }
  }
}

TEST_P(LiveColumnsTest, FewDeadOnesCountAsNone) {
  LiveColumns live(80, 8);
  look(&live, matrix(70, 80, {1, 2, 3, 4, 5, 6, 7, 8, 9}), 70);
  EXPECT_TRUE(live.all());
  EXPECT_TRUE(live.has(5));
  look(&live, matrix(70, 80, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), 70);
  EXPECT_EQ(live.count(), 70U);
  EXPECT_FALSE(live.has(5));
}

TEST_P(LiveColumnsTest, OneNumberInTheLastRowIsEnough) {
  std::set<uint32_t> dead;
  for (uint32_t c = 0; c < 40; ++c) dead.insert(c);
  const Tensor t = matrix(200, 100, dead);
  const float one = std::numeric_limits<float>::quiet_NaN();
  write_row(slice(t, 7, 1), 199, &one, false);
  LiveColumns live(100, 8);
  look(&live, t, 200);
  EXPECT_EQ(live.count(), 61U);
  EXPECT_TRUE(live.has(7)) << "a NaN is no zero: it must reach the loss, which refuses it";
  look(&live, t, 199);
  EXPECT_EQ(live.count(), 60U);
}

TEST_P(LiveColumnsTest, ARowOfAWeightWritesOnlyWhatIsLive) {
  LiveColumns columns(33, 8);
  look(&columns, matrix(3, 33, {0, 5, 6, 7, 8, 32}), 3);
  std::vector<float> row(33 + 16);
  for (float& w : row) w = static_cast<float>(random_.normal());
  std::vector<float> few(columns.count() + 1, 9.0F);
  columns.squeeze_row(row.data(), few.data());
  for (uint32_t i = 0; i < columns.count(); ++i) EXPECT_EQ(few[i], row[columns.column(i)]);
  EXPECT_EQ(few.back(), 9.0F);
}

std::vector<DType> types() {
  if (!LiveColumns::possible()) return {};
  return {DType::kF32, DType::kBf16};
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LiveColumnsTest);
INSTANTIATE_TEST_SUITE_P(Types, LiveColumnsTest, testing::ValuesIn(types()), [](const auto& info) {
  return info.param == DType::kF32 ? "fp32" : "bf16";
});

}  // namespace
}  // namespace flux
