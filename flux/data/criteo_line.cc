#include "flux/data/criteo_line.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include <immintrin.h>

#include "flux/data/decimal.h"

namespace flux {
namespace {

constexpr uint32_t kTabs = kCriteoFields - 1;
// bound[f] is the tab before field f (one before the line for field 0), so field f is the bytes
// between bound[f] and bound[f + 1]. Room for the tabs of one chunk too many and for padding.
constexpr size_t kBounds = kTabs + 2 + 64 + 16;

inline uint64_t load64(const char* p) {
  uint64_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

inline uint64_t tab_mask(const char* p) {
  const __m256i tab = _mm256_set1_epi8('\t');
  const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32));
  const auto low = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(a, tab)));
  const auto high = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(b, tab)));
  return low | (uint64_t{high} << 32);
}

// Writes the positions of the tabs; false unless there are exactly kTabs. Positions are written
// in runs of eight whether there are so many or not, because a branch per tab costs more.
inline bool find_tabs(const char* text, uint32_t size, uint32_t* tabs) {
  uint32_t n = 0;
  for (uint32_t at = 0; at < size; at += 64) {
    uint64_t mask = tab_mask(text + at);
    if (size - at < 64) mask = _bzhi_u64(mask, size - at);
    const auto count = static_cast<uint32_t>(std::popcount(mask));
    if (n + count > kTabs) return false;
    uint32_t* out = tabs + n;
    for (uint32_t done = 0; done < count; done += 8) {
      for (uint32_t i = 0; i < 8; ++i) {
        *out++ = at + static_cast<uint32_t>(_tzcnt_u64(mask));
        mask = _blsr_u64(mask);
      }
    }
    n += count;
  }
  return n == kTabs;
}

struct Fields4 {
  __m256i bytes;   // first 8 bytes of each field, garbage behind its end
  __m256i length;  // bytes of each field
};

inline Fields4 load_fields(const char* text, const uint32_t* bound) {
  const char* base = text + 1;
  const __m128i begin = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bound));
  const __m128i end = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bound + 1));
  const __m128i length = _mm_sub_epi32(_mm_sub_epi32(end, begin), _mm_set1_epi32(1));
  return {_mm256_set_epi64x(static_cast<int64_t>(load64(base + bound[3])),
                            static_cast<int64_t>(load64(base + bound[2])),
                            static_cast<int64_t>(load64(base + bound[1])),
                            static_cast<int64_t>(load64(base + bound[0]))),
          _mm256_cvtepu32_epi64(length)};
}

// Moves each field to the end of its 8 bytes and puts '0' before it. A length of 0 gives all '0'
// (the shifts give 0 for counts of 64 and more).
inline __m256i align_right(__m256i bytes, __m256i length) {
  const __m256i bits = _mm256_slli_epi64(length, 3);
  const __m256i zeros = _mm256_set1_epi8('0');
  return _mm256_or_si256(_mm256_sllv_epi64(bytes, _mm256_sub_epi64(_mm256_set1_epi64x(64), bits)),
                         _mm256_srlv_epi64(zeros, bits));
}

// Four tokens to four keys; ors into *bad whatever is not 0..8 hexadecimal digits.
inline __m256i decode_tokens(const Fields4& fields, __m256i slot_keys, __m256i* bad) {
  const __m256i text = align_right(fields.bytes, fields.length);
  const __m256i digit = _mm256_sub_epi8(text, _mm256_set1_epi8('0'));
  const __m256i letter =
      _mm256_sub_epi8(_mm256_or_si256(text, _mm256_set1_epi8(0x20)), _mm256_set1_epi8('a'));
  const __m256i is_digit = _mm256_cmpeq_epi8(_mm256_min_epu8(digit, _mm256_set1_epi8(9)), digit);
  const __m256i is_letter = _mm256_cmpeq_epi8(_mm256_min_epu8(letter, _mm256_set1_epi8(5)), letter);
  const __m256i refused =
      _mm256_cmpeq_epi8(_mm256_or_si256(is_digit, is_letter), _mm256_setzero_si256());
  const __m256i too_long = _mm256_cmpgt_epi64(fields.length, _mm256_set1_epi64x(8));
  *bad = _mm256_or_si256(*bad, _mm256_or_si256(refused, too_long));
  const __m256i nibbles =
      _mm256_blendv_epi8(_mm256_add_epi8(letter, _mm256_set1_epi8(10)), digit, is_digit);
  const __m256i pairs = _mm256_maddubs_epi16(nibbles, _mm256_set1_epi16(0x0110));  // 16 * a + b
  const __m256i order = _mm256_setr_epi8(6, 4, 2, 0, -1, -1, -1, -1, 14, 12, 10, 8, -1, -1, -1, -1,
                                         6, 4, 2, 0, -1, -1, -1, -1, 14, 12, 10, 8, -1, -1, -1, -1);
  const __m256i missing = _mm256_and_si256(
      _mm256_cmpeq_epi64(fields.length, _mm256_setzero_si256()), _mm256_set1_epi64x(1LL << 48));
  return _mm256_or_si256(_mm256_shuffle_epi8(pairs, order), _mm256_or_si256(slot_keys, missing));
}

inline __m128i even_words(__m256i v) {
  return _mm256_castsi256_si128(
      _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6)));
}

// 8 decimal digits per lane to their value, in 64-bit lanes.
inline __m256i join_digits(__m256i digits) {
  const __m256i twos = _mm256_maddubs_epi16(digits, _mm256_set1_epi16(0x010a));
  const __m256i fours = _mm256_madd_epi16(twos, _mm256_set1_epi32(0x00010064));
  return _mm256_add_epi64(_mm256_mul_epu32(fours, _mm256_set1_epi64x(10000)),
                          _mm256_srli_epi64(fours, 32));
}

// Four decimals; *bad gets a bit for each lane that is not of the regular form.
inline __m128 decode_decimals(const Fields4& fields, int* bad) {
  const __m256i zero = _mm256_setzero_si256();
  const __m256i first = _mm256_and_si256(fields.bytes, _mm256_set1_epi64x(0xff));
  const __m256i negative = _mm256_cmpeq_epi64(first, _mm256_set1_epi64x('-'));
  const __m256i bytes =
      _mm256_blendv_epi8(fields.bytes, _mm256_srli_epi64(fields.bytes, 8), negative);
  const __m256i length = _mm256_add_epi64(fields.length, negative);
  const __m256i text = align_right(bytes, length);

  // Take the first '.' out: what is before it moves one byte on.
  const __m256i dots = _mm256_cmpeq_epi8(text, _mm256_set1_epi8('.'));
  const __m256i no_dot = _mm256_cmpeq_epi64(dots, zero);
  const __m256i low_bit = _mm256_and_si256(dots, _mm256_sub_epi64(zero, dots));
  const __m256i before = _mm256_sub_epi64(low_bit, _mm256_set1_epi64x(1));
  const __m256i dot = _mm256_sub_epi64(_mm256_slli_epi64(low_bit, 8), low_bit);
  const __m256i after = _mm256_andnot_si256(_mm256_or_si256(before, dot), _mm256_set1_epi8(-1));
  const __m256i moved = _mm256_or_si256(_mm256_slli_epi64(_mm256_and_si256(text, before), 8),
                                        _mm256_set1_epi64x('0'));
  const __m256i joined =
      _mm256_blendv_epi8(_mm256_or_si256(moved, _mm256_and_si256(text, after)), text, no_dot);
  const __m256i decimals = _mm256_sad_epu8(_mm256_and_si256(after, _mm256_set1_epi8(1)), zero);

  const __m256i digits = _mm256_sub_epi8(joined, _mm256_set1_epi8('0'));
  const __m256i good =
      _mm256_cmpeq_epi64(_mm256_cmpeq_epi8(_mm256_min_epu8(digits, _mm256_set1_epi8(9)), digits),
                         _mm256_set1_epi8(-1));
  const __m256i too_long = _mm256_cmpgt_epi64(fields.length, _mm256_set1_epi64x(8));
  // "-", "." and "-." have no digit at all.
  const __m256i one_if_dot = _mm256_add_epi64(_mm256_set1_epi64x(1), no_dot);
  const __m256i bare = _mm256_andnot_si256(_mm256_cmpeq_epi64(fields.length, zero),
                                           _mm256_cmpeq_epi64(length, one_if_dot));
  const __m256i wrong = _mm256_or_si256(_mm256_or_si256(too_long, bare),
                                        _mm256_xor_si256(good, _mm256_set1_epi8(-1)));
  *bad = _mm256_movemask_pd(_mm256_castsi256_pd(wrong));

  // Digits and power of ten are exact doubles: the division rounds once.
  const __m256 powers = _mm256_setr_ps(1e0F, 1e1F, 1e2F, 1e3F, 1e4F, 1e5F, 1e6F, 1e7F);
  const __m256i scale = _mm256_castps_si256(_mm256_permutevar8x32_ps(powers, decimals));
  const __m256d value = _mm256_div_pd(_mm256_cvtepi32_pd(even_words(join_digits(digits))),
                                      _mm256_cvtps_pd(_mm_castsi128_ps(even_words(scale))));
  const __m128i sign = _mm_slli_epi32(even_words(negative), 31);
  return _mm_xor_ps(_mm256_cvtpd_ps(value), _mm_castsi128_ps(sign));
}

// The lanes of `bad` again, exactly; false if one is no decimal.
[[gnu::noinline]] bool decode_rest(const char* text, const uint32_t* bound, int bad, float* out) {
  for (int lane = 0; lane < 4; ++lane)
    if ((bad >> lane & 1) != 0 &&
        !parse_decimal(text + bound[lane] + 1, text + bound[lane + 1], out + lane))
      return false;
  return true;
}

inline bool decode_dense(const char* text, const uint32_t* bound, float* out) {
  for (uint32_t i = 0; i < 16; i += 4) {
    int bad = 0;
    _mm_store_ps(out + i, decode_decimals(load_fields(text, bound + i), &bad));
    if (i == 12) bad &= 1;  // the other lanes are tokens already
    if (bad != 0 && !decode_rest(text, bound + i, bad, out + i)) [[unlikely]]
      return false;
  }
  return true;
}

inline bool decode_keys(const char* text, const uint32_t* bound, uint64_t* out) {
  __m256i bad = _mm256_setzero_si256();
  __m256i slot_keys = _mm256_setr_epi64x(1LL << 32, 2LL << 32, 3LL << 32, 4LL << 32);
  for (uint32_t s = 0; s < 28; s += 4) {
    const __m256i keys = decode_tokens(load_fields(text, bound + s), slot_keys, &bad);
    _mm256_store_si256(reinterpret_cast<__m256i*>(out + s), keys);
    slot_keys = _mm256_add_epi64(slot_keys, _mm256_set1_epi64x(4LL << 32));
  }
  return _mm256_testz_si256(bad, bad) != 0;
}

}  // namespace

bool parse_criteo_line(const char* text, size_t size, CriteoRecord* out) {
  if (size > kCriteoLineBytesMax) return false;
  auto length = static_cast<uint32_t>(size);
  if (length > 0 && text[length - 1] == '\r') --length;
  alignas(32) uint32_t bound[kBounds];
  bound[0] = UINT32_MAX;
  if (!find_tabs(text, length, bound + 1)) return false;
  // The end of the line is the last bound; two empty fields fill the last vector.
  for (uint32_t i = 0; i < 4; ++i) bound[kTabs + 1 + i] = length + i;
  if (bound[1] != 1 || (text[0] & ~1) != '0') return false;
  out->label = static_cast<float>(text[0] & 1);
  return decode_dense(text, bound + 1, out->dense) &&
         decode_keys(text, bound + 1 + kCriteoDense, out->keys);
}

}  // namespace flux
