// turn_four: columns become rows, four columns at a time.
// Pure functions; need AVX2, which every build has.
#pragma once

#include <cstddef>
#include <cstdint>

#include <immintrin.h>

namespace flux {

inline void turn_four_by_four(const uint64_t* const* columns, size_t row, size_t width,
                              uint64_t* out) {
  __m256i column[4];
  for (size_t c = 0; c < 4; ++c)
    column[c] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(columns[c] + row));
  const __m256i even01 = _mm256_unpacklo_epi64(column[0], column[1]);
  const __m256i odd01 = _mm256_unpackhi_epi64(column[0], column[1]);
  const __m256i even23 = _mm256_unpacklo_epi64(column[2], column[3]);
  const __m256i odd23 = _mm256_unpackhi_epi64(column[2], column[3]);
  const __m256i turned[4] = {_mm256_permute2x128_si256(even01, even23, 0x20),
                             _mm256_permute2x128_si256(odd01, odd23, 0x20),
                             _mm256_permute2x128_si256(even01, even23, 0x31),
                             _mm256_permute2x128_si256(odd01, odd23, 0x31)};
  for (size_t r = 0; r < 4; ++r)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + (row + r) * width), turned[r]);
}

inline void turn_four_by_four(const float* const* columns, size_t row, size_t width, float* out) {
  __m128 turned[4];
  for (size_t c = 0; c < 4; ++c) turned[c] = _mm_loadu_ps(columns[c] + row);
  _MM_TRANSPOSE4_PS(turned[0], turned[1], turned[2], turned[3]);
  for (size_t r = 0; r < 4; ++r) _mm_storeu_ps(out + (row + r) * width, turned[r]);
}

// The rows from `from` to `to` of four columns, to places 0 to 3 of rows of `width`. T: uint64_t or
// float.
template <typename T>
void turn_four(const T* const* columns, size_t from, size_t to, size_t width, T* out) {
  size_t row = from;
  for (; row + 4 <= to; row += 4) turn_four_by_four(columns, row, width, out);
  for (; row < to; ++row)
    for (size_t c = 0; c < 4; ++c) out[row * width + c] = columns[c][row];
}

}  // namespace flux
