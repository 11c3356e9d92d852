// Ends of words, 32 bytes at a time, for fast parsers.
// Pure functions. 32 bytes behind `end` must be readable.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include <immintrin.h>

namespace flux {

inline bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

// Where the word at `at` ends: at a blank, a tab or `end`.
inline const char* word_end(const char* at, const char* end) {
  const __m256i blank = _mm256_set1_epi8(' '), tab = _mm256_set1_epi8('\t');
  for (; at < end; at += 32) {
    const __m256i text = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
    const __m256i found =
        _mm256_or_si256(_mm256_cmpeq_epi8(text, blank), _mm256_cmpeq_epi8(text, tab));
    const auto mask = static_cast<uint32_t>(_mm256_movemask_epi8(found));
    if (mask != 0) return std::min(at + std::countr_zero(mask), end);
  }
  return end;
}

}  // namespace flux
