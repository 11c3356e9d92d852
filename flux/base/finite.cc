#include "flux/base/finite.h"

#include <cmath>
#include <cstdint>
#include <cstring>

#include <fmt/core.h>
#include <immintrin.h>

namespace flux {
namespace {

constexpr int kMagnitude = 0x7fffffff;
constexpr int kLargest = 0x7f7fffff;  // bits of the largest finite float
constexpr size_t kPiece = 4096;       // floats between two looks at the result

// As integers magnitudes are ordered as the floats are, with infinity and NaN above all numbers.
bool piece_is_finite(const float* x, size_t n) {
  const __m256i mask = _mm256_set1_epi32(kMagnitude);
  __m256i most[4] = {};
  size_t i = 0;
  for (; i + 32 <= n; i += 32)
    for (size_t k = 0; k < 4; ++k) {
      const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i + 8 * k));
      most[k] = _mm256_max_epi32(most[k], _mm256_and_si256(bits, mask));
    }
  const __m256i all =
      _mm256_max_epi32(_mm256_max_epi32(most[0], most[1]), _mm256_max_epi32(most[2], most[3]));
  const __m256i over = _mm256_cmpgt_epi32(all, _mm256_set1_epi32(kLargest));
  bool bad = _mm256_testz_si256(over, over) == 0;
  for (; i < n; ++i) {
    uint32_t bits;
    std::memcpy(&bits, x + i, sizeof bits);
    bad = bad || (bits & kMagnitude) > kLargest;
  }
  return !bad;
}

}  // namespace

size_t first_not_finite(const float* x, size_t n) {
  for (size_t begin = 0; begin < n; begin += kPiece) {
    const size_t size = n - begin < kPiece ? n - begin : kPiece;
    if (piece_is_finite(x + begin, size)) [[likely]]
      continue;
    for (size_t i = begin; i < begin + size; ++i)
      if (!std::isfinite(x[i])) return i;
  }
  return n;
}

std::string float_text(double x) {
  if (std::isnan(x)) return "nan";  // without the sign, which means nothing
  return fmt::format("{}", x);
}

}  // namespace flux
