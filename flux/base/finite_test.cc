#include "flux/base/finite.h"

#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "flux/base/random.h"

namespace flux {
namespace {

float of_bits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

const std::vector<float> kNumbers = {0.0F,    -0.0F,    FLT_TRUE_MIN, -FLT_TRUE_MIN,
                                     FLT_MIN, -FLT_MIN, FLT_MAX,      -FLT_MAX};
const std::vector<float> kOthers = {
    INFINITY, -INFINITY, NAN, -NAN, of_bits(0x7f800001U), of_bits(0xffffffffU)};

TEST(FirstNotFinite, FindsTheFirstOfAnyKindAtAnyPlace) {
  Random random(1);
  for (const size_t n : {0, 1, 7, 8, 31, 32, 33, 100, 4095, 4096, 4097, 9000}) {
    std::vector<float> x(n + 1);
    for (float& value : x) value = kNumbers[random.below(kNumbers.size())];
    x[n] = NAN;  // behind the end
    ASSERT_EQ(first_not_finite(x.data(), n), n);
    for (int round = 0; n > 0 && round < 200; ++round) {
      const size_t at =
          round < 40 ? std::min<size_t>(static_cast<size_t>(round), n - 1) : random.below(n);
      const size_t later = at + random.below(n - at);
      const float before = x[at], after = x[later];
      x[later] = kOthers[random.below(kOthers.size())];
      x[at] = kOthers[random.below(kOthers.size())];
      ASSERT_EQ(first_not_finite(x.data(), n), at) << "of " << n;
      x[later] = after;
      x[at] = before;
    }
  }
}

TEST(FloatText, NamesWhatIsNoNumber) {
  EXPECT_EQ(float_text(NAN), "nan");
  EXPECT_EQ(float_text(-NAN), "nan");
  EXPECT_EQ(float_text(-INFINITY), "-inf");
  EXPECT_EQ(float_text(1.5), "1.5");
}

}  // namespace
}  // namespace flux
