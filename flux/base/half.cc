#include "flux/base/half.h"

#include <bit>
#include <cmath>

#include <immintrin.h>

namespace flux {
namespace {
constexpr float kFp16Max = 65504.0F;
constexpr uint32_t kExponent = 0x7f800000U;
}  // namespace

uint16_t fp16_scalar(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000U);
  const float size = std::fabs(value);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7e00U | ((bits >> 13) & 0x3ffU));
  if (std::isinf(value)) return static_cast<uint16_t>(sign | 0x7c00U);
  if (size >= kFp16Max) return static_cast<uint16_t>(sign | 0x7bffU);
  // In units of the last place that fp16 has at this size; 2^-24 for subnormal numbers.
  int exponent = 0;
  (void)std::frexp(size, &exponent);
  const int last = size == 0 || exponent - 11 < -24 ? -24 : exponent - 11;
  const auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, -last)));
  // 1024 units or more carry the hidden bit, which moves the exponent by one: so does a carry.
  const uint32_t above = static_cast<uint32_t>(last + 24) << 10;
  return static_cast<uint16_t>(sign | (above + units));
}

float float_of_fp16_scalar(uint16_t value) {
  const uint32_t exponent = (value >> 10) & 0x1fU;
  const uint32_t mantissa = value & 0x3ffU;
  const float sign = (value & 0x8000U) != 0 ? -1.0F : 1.0F;
  if (exponent == 0x1f) {
    const uint32_t quiet = mantissa != 0 ? 0x400000U : 0;
    return std::bit_cast<float>((value & 0x8000U) << 16 | kExponent | quiet | mantissa << 13);
  }
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(mantissa + 1024), static_cast<int>(exponent) - 25);
}

uint16_t bf16_scalar(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40U);
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

float float_of_bf16_scalar(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

void floats_to_fp16(const float* in, uint16_t* out, size_t n) {
  const __m256 most = _mm256_set1_ps(kFp16Max), least = _mm256_set1_ps(-kFp16Max);
  const __m256 infinity = _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(kExponent)));
  const __m256 no_sign = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 x = _mm256_loadu_ps(in + i);
    // min and max give their second operand when one is NaN.
    const __m256 bounded = _mm256_max_ps(least, _mm256_min_ps(most, x));
    const __m256 is_infinite = _mm256_cmp_ps(_mm256_and_ps(x, no_sign), infinity, _CMP_EQ_OQ);
    const __m256 kept = _mm256_blendv_ps(bounded, x, is_infinite);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_cvtps_ph(kept, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  for (; i < n; ++i) out[i] = fp16_scalar(in[i]);
}

void fp16_to_floats(const uint16_t* in, float* out, size_t n) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(
        out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
  for (; i < n; ++i) out[i] = float_of_fp16_scalar(in[i]);
}

namespace {

// Eight floats to the upper halves of eight 32-bit numbers, moved down.
__m256i bf16_of(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i round = _mm256_add_epi32(_mm256_set1_epi32(0x7fff), odd);
  const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, round), 16);
  const __m256i quiet = _mm256_or_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(0x40));
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  return _mm256_blendv_epi8(rounded, quiet, is_nan);
}

}  // namespace

void floats_to_bf16(const float* in, uint16_t* out, size_t n) {
  size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    // The pack works within halves of 128 bits: the permutation puts its quarters in order.
    const __m256i packed =
        _mm256_packus_epi32(bf16_of(_mm256_loadu_ps(in + i)), bf16_of(_mm256_loadu_ps(in + i + 8)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i),
                        _mm256_permute4x64_epi64(packed, 0b11011000));
  }
  for (; i < n; ++i) out[i] = bf16_scalar(in[i]);
}

void bf16_to_floats(const uint16_t* in, float* out, size_t n) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i));
    const __m256i bits = _mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16);
    _mm256_storeu_ps(out + i, _mm256_castsi256_ps(bits));
  }
  for (; i < n; ++i) out[i] = float_of_bf16_scalar(in[i]);
}

}  // namespace flux
