// Numbers at the beginning of text, 16 bytes at a time: for fast parsers, which go on behind what
// was read. What is out of the ordinary (an exponent, more digits) is not read but left to a plain
// parser. Results are those of std::from_chars and parse_decimal(), bit for bit.
// Pure functions. 32 bytes from `at` on must be readable.
#pragma once

#include <bit>
#include <cstdint>

#include <immintrin.h>

namespace flux {
namespace number_scan {

// 16 bytes; bit i of `digits` is set if byte i is a digit.
struct Text16 {
  __m128i values;  // bytes less '0'
  uint32_t digits;
};

inline Text16 load(const char* at) {
  const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  const __m128i values = _mm_sub_epi8(text, _mm_set1_epi8('0'));
  const __m128i is_digit = _mm_cmpeq_epi8(_mm_min_epu8(values, _mm_set1_epi8(9)), values);
  return {values, static_cast<uint32_t>(_mm_movemask_epi8(is_digit))};
}

// The first `length` <= 16 digits as a number.
inline uint64_t join(const Text16& text, uint32_t length) {
  alignas(32) static constexpr char kRight[32] = {-128, -128, -128, -128, -128, -128, -128, -128,
                                                  -128, -128, -128, -128, -128, -128, -128, -128,
                                                  0,    1,    2,    3,    4,    5,    6,    7,
                                                  8,    9,    10,   11,   12,   13,   14,   15};
  const __m128i order = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kRight + length));
  const __m128i digits = _mm_shuffle_epi8(text.values, order);  // to the right, zeros before them
  const __m128i twos = _mm_maddubs_epi16(digits, _mm_set1_epi16(0x010a));
  const __m128i fours = _mm_madd_epi16(twos, _mm_set1_epi32(0x00010064));
  const __m128i packed = _mm_packus_epi32(fours, fours);
  const __m128i eights = _mm_madd_epi16(packed, _mm_set1_epi32(0x00012710));
  const auto both = static_cast<uint64_t>(_mm_cvtsi128_si64(eights));
  return (both & 0xffffffffU) * 100000000 + (both >> 32);
}

// Digits 17 to 20; 0 if there are more, or the number does not fit.
[[gnu::noinline]] inline uint32_t take_long(const char* at, uint64_t first, uint64_t* out) {
  uint32_t length = 16;
  uint64_t value = first;
  for (; at[length] >= '0' && at[length] <= '9'; ++length) {
    const auto digit = static_cast<uint64_t>(at[length] - '0');
    if (length == 20 || __builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, digit, &value))
      return 0;
  }
  *out = value;
  return length;
}

}  // namespace number_scan

// A whole number below 2^64. Returns its length in bytes, 0 if there is none or it is too long.
inline uint32_t scan_whole(const char* at, uint64_t* out) {
  const number_scan::Text16 text = number_scan::load(at);
  const auto length = static_cast<uint32_t>(std::countr_one(text.digits));
  *out = number_scan::join(text, length);
  if (length == 16) [[unlikely]]
    return number_scan::take_long(at, *out, out);
  return length;
}

// A number with up to 15 digits: '-'? digits with an optional '.'. Returns its length in bytes, 0
// if it is something else.
inline uint32_t scan_decimal(const char* at, float* out) {
  static constexpr double kPow10[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                      1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const uint32_t sign = at[0] == '-' ? 1 : 0;
  const char* begin = at + sign;
  const number_scan::Text16 text = number_scan::load(begin);
  const auto whole = static_cast<uint32_t>(std::countr_one(text.digits));
  if (whole > 15) return 0;
  uint64_t mantissa = number_scan::join(text, whole);
  uint32_t length = whole, decimals = 0;
  if (begin[whole] == '.') {
    const number_scan::Text16 rest = number_scan::load(begin + whole + 1);
    decimals = static_cast<uint32_t>(std::countr_one(rest.digits));
    if (whole + decimals > 15) return 0;
    mantissa =
        mantissa * static_cast<uint64_t>(kPow10[decimals]) + number_scan::join(rest, decimals);
    length += decimals + 1;
  }
  if (whole + decimals == 0) return 0;
  if ((begin[length] | 0x20) == 'e') return 0;
  // Both are exact, so the one rounding of the division is the right one.
  const double value = static_cast<double>(mantissa) / kPow10[decimals];
  *out = static_cast<float>(sign != 0 ? -value : value);
  return length + sign;
}

}  // namespace flux
