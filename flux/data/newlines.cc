#include "flux/data/newlines.h"

#include <immintrin.h>

#include <bit>

namespace flux {
namespace {

// Bit i is set where byte i of the 32 at p is a newline.
uint32_t newline_mask(const char* p) {
  const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  const __m256i hits = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('\n'));
  return static_cast<uint32_t>(_mm256_movemask_epi8(hits));
}

}  // namespace

size_t count_newlines(const char* text, size_t size) {
  size_t count = 0, i = 0;
  for (; i + 128 <= size; i += 128)
    for (size_t j = 0; j < 128; j += 32)
      count += static_cast<size_t>(std::popcount(newline_mask(text + i + j)));
  for (; i < size; ++i) count += text[i] == '\n' ? 1 : 0;
  return count;
}

size_t after_newline(const char* text, size_t size, size_t n) {
  size_t i = 0;
  for (; i + 32 <= size; i += 32) {
    uint32_t mask = newline_mask(text + i);
    const auto here = static_cast<size_t>(std::popcount(mask));
    if (here < n) {
      n -= here;
      continue;
    }
    while (--n > 0) mask &= mask - 1;
    return i + static_cast<size_t>(std::countr_zero(mask)) + 1;
  }
  for (; i < size; ++i)
    if (text[i] == '\n' && --n == 0) return i + 1;
  return size + 1;
}

void line_starts(const char* text, size_t size, std::vector<uint32_t>* starts) {
  starts->clear();
  if (size == 0) return;
  starts->push_back(0);
  size_t i = 0;
  for (; i + 32 <= size; i += 32)
    for (uint32_t mask = newline_mask(text + i); mask != 0; mask &= mask - 1)
      starts->push_back(static_cast<uint32_t>(i) + static_cast<uint32_t>(std::countr_zero(mask)) +
                        1);
  for (; i < size; ++i)
    if (text[i] == '\n') starts->push_back(static_cast<uint32_t>(i) + 1);
  if (starts->back() == size) starts->pop_back();
}

}  // namespace flux
