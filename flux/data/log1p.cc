#include "flux/data/log1p.h"

#include <bit>
#include <cstdint>

namespace flux {
namespace {

// u >= 1 and finite. Splits u = 2^e * m with m in [1/sqrt2, sqrt2), then the series of
// log m = 2 atanh((m - 1) / (m + 1)).
inline double log_of(double u) {
  constexpr double kLn2 = 0.69314718055994530942;
  constexpr uint64_t kSqrtHalfBits = 0x3fe6a09e667f3bcdULL;
  constexpr double kMagic = 6755399441055744.0;  // 1.5 * 2^52: integer to double by addition
  const uint64_t bits = std::bit_cast<uint64_t>(u);
  const uint64_t shifted = bits - kSqrtHalfBits;
  const uint64_t exponent = shifted >> 52;  // of u, from 0 up, since u >= 1 > 1/sqrt2
  const double e = std::bit_cast<double>(std::bit_cast<uint64_t>(kMagic) + exponent) - kMagic;
  const double m = std::bit_cast<double>(bits - (exponent << 52));
  const double s = (m - 1.0) / (m + 1.0);
  const double q = s * s;
  double p = 1.0 / 13;
  p = p * q + 1.0 / 11;
  p = p * q + 1.0 / 9;
  p = p * q + 1.0 / 7;
  p = p * q + 1.0 / 5;
  p = p * q + 1.0 / 3;
  p = p * q + 1.0;
  return e * kLn2 + 2.0 * s * p;
}

}  // namespace

void log1p_of_positive(float* values, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const double x = values[i] > 0 ? values[i] : 0.0F;
    values[i] = static_cast<float>(log_of(1.0 + x));
  }
}

}  // namespace flux
