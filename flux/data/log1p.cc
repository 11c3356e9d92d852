#include "flux/data/log1p.h"

#include <algorithm>
#include <cstddef>

#include <immintrin.h>

namespace flux {
namespace {

// 1 + x = 2^k * (1 + f) with f in [-0.3, 0.42); then log(1 + f) = 2 atanh(s), s = f / (2 + f).
inline __m256 log1p_relu8(__m256 value) {
  const __m256 one = _mm256_set1_ps(1.0F);
  const __m256 x = _mm256_max_ps(value, _mm256_setzero_ps());
  const __m256 u = _mm256_add_ps(one, x);
  // What the addition lost, for x < 1 and for x >= 1.
  const __m256 lost_small = _mm256_sub_ps(x, _mm256_sub_ps(u, one));
  const __m256 lost_large = _mm256_sub_ps(one, _mm256_sub_ps(u, x));
  const __m256 lost = _mm256_blendv_ps(lost_large, lost_small, _mm256_cmp_ps(x, one, _CMP_LT_OQ));

  // k moves on at sqrt(2): 0x3f3504f3 is sqrt(0.5).
  const __m256i bits = _mm256_castps_si256(u);
  const __m256i k = _mm256_srai_epi32(_mm256_sub_epi32(bits, _mm256_set1_epi32(0x3f3504f3)), 23);
  const __m256i exponent = _mm256_slli_epi32(k, 23);
  const __m256 m = _mm256_castsi256_ps(_mm256_sub_epi32(bits, exponent));
  // 2^-k in two halves, because 2^-127 is not a normal float.
  const __m256i half_k = _mm256_srai_epi32(k, 1);
  const __m256i bias = _mm256_set1_epi32(127);
  const __m256 scale_a = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_sub_epi32(bias, half_k), 23));
  const __m256 scale_b = _mm256_castsi256_ps(
      _mm256_slli_epi32(_mm256_sub_epi32(bias, _mm256_sub_epi32(k, half_k)), 23));
  const __m256 f =
      _mm256_add_ps(_mm256_sub_ps(m, one), _mm256_mul_ps(_mm256_mul_ps(lost, scale_a), scale_b));

  const __m256 s = _mm256_div_ps(f, _mm256_add_ps(_mm256_set1_ps(2.0F), f));
  const __m256 z = _mm256_mul_ps(s, s);
  __m256 p = _mm256_set1_ps(2.0F / 9);
  for (const float c : {2.0F / 7, 2.0F / 5, 2.0F / 3})
    p = _mm256_add_ps(_mm256_mul_ps(p, z), _mm256_set1_ps(c));
  // 2 s = f - s f, which keeps the digits of f.
  const __m256 tail = _mm256_mul_ps(s, _mm256_sub_ps(_mm256_mul_ps(p, z), f));
  const __m256 n = _mm256_cvtepi32_ps(k);
  const __m256 low = _mm256_add_ps(tail, _mm256_mul_ps(n, _mm256_set1_ps(-2.12194440e-4F)));
  return _mm256_add_ps(_mm256_mul_ps(n, _mm256_set1_ps(0.693359375F)), _mm256_add_ps(f, low));
}

}  // namespace

void log1p_relu(std::span<float> values) {
  size_t i = 0;
  for (; i + 8 <= values.size(); i += 8)
    _mm256_storeu_ps(&values[i], log1p_relu8(_mm256_loadu_ps(&values[i])));
  if (i == values.size()) return;
  float rest[8] = {};
  std::copy(values.begin() + static_cast<ptrdiff_t>(i), values.end(), rest);
  _mm256_storeu_ps(rest, log1p_relu8(_mm256_loadu_ps(rest)));
  std::copy(rest, rest + (values.size() - i), values.begin() + static_cast<ptrdiff_t>(i));
}

}  // namespace flux
