#include "flux/data/lines.h"

#include <bit>
#include <cstring>

#include <immintrin.h>

namespace flux {
namespace {

// Bit i is set if p[i] is a newline.
inline uint64_t newline_mask(const char* p) {
  const __m256i newline = _mm256_set1_epi8('\n');
  const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32));
  const auto low = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(a, newline)));
  const auto high = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(b, newline)));
  return low | (uint64_t{high} << 32);
}

// The mask of the last size < 64 bytes, read without touching what is behind them.
inline uint64_t newline_mask_tail(const char* p, size_t size) {
  char rest[64] = {};
  std::memcpy(rest, p, size);
  return newline_mask(rest);
}

inline uint64_t mask_at(const char* text, size_t at, size_t size) {
  return size - at >= 64 ? newline_mask(text + at) : newline_mask_tail(text + at, size - at);
}

}  // namespace

size_t count_newlines(const char* text, size_t size) {
  const __m256i newline = _mm256_set1_epi8('\n');
  const __m256i zero = _mm256_setzero_si256();
  __m256i sum = zero;
  size_t at = 0;
  while (size - at >= 128) {
    // Byte counters, at most 255 rounds before they are emptied.
    __m256i counts = zero;
    for (int round = 0; round < 60 && size - at >= 128; ++round, at += 128) {
      for (size_t i = 0; i < 128; i += 32) {
        const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text + at + i));
        counts = _mm256_sub_epi8(counts, _mm256_cmpeq_epi8(v, newline));
      }
    }
    sum = _mm256_add_epi64(sum, _mm256_sad_epu8(counts, zero));
  }
  alignas(32) uint64_t lanes[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), sum);
  size_t total = lanes[0] + lanes[1] + lanes[2] + lanes[3];
  for (; at < size; at += 64) total += static_cast<size_t>(std::popcount(mask_at(text, at, size)));
  return total;
}

size_t find_newline(const char* text, size_t size, size_t n) {
  for (size_t at = 0; at < size; at += 64) {
    const uint64_t mask = mask_at(text, at, size);
    const auto count = static_cast<size_t>(std::popcount(mask));
    if (n < count) return at + static_cast<size_t>(std::countr_zero(_pdep_u64(1ULL << n, mask)));
    n -= count;
  }
  return size;
}

size_t index_lines(const char* text, uint32_t size, size_t lines_max, uint32_t* begins) {
  size_t n = 0;
  if (size == 0) return 0;
  begins[0] = 0;
  for (uint32_t at = 0; at < size; at += 64) {
    for (uint64_t mask = mask_at(text, at, size); mask != 0; mask &= mask - 1) {
      if (n == lines_max) return lines_max + 1;
      begins[++n] = at + static_cast<uint32_t>(std::countr_zero(mask)) + 1;
      if (size - at <= 64 && begins[n] == size) return n;
    }
  }
  if (begins[n] == size) return n;
  if (n == lines_max) return lines_max + 1;
  begins[++n] = size + 1;
  return n;
}

}  // namespace flux
