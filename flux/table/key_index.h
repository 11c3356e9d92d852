// KeyIndex: hash -> row number, in 4 bytes per entry, one cache line per look-up.
//
//   line:  [ entry 0 | entry 1 | ... | entry 15 ]          64 bytes
//   entry: [ fingerprint: 32 - b bits | row number + 1: b bits ]   0 = empty
//
// A hash chooses a line; its entries are compared at once by SIMD. A full line overflows into the
// next. b is as small as the capacity allows (but at least 16), so a shard of 400,000 rows still
// has 12 bits of fingerprint; a match is only a candidate until the key in the row agrees.
// Load is kept below 0.8 and capacity grows by half, so entries cost 5 to 8 bytes per key.
// Nothing is ever removed. The hash bits used: 0-31 for the line, 32-47 for the fingerprint; the
// shard of a key comes from the highest bits.
// Threads: none inside; look-ups may run concurrently; prefetch() at any time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <immintrin.h>

#include "flux/table/row_arena.h"

namespace flux {

class KeyIndex {
 public:
  static constexpr size_t kLineEntries = 16;
  static constexpr uint32_t kNone = ~0U;

  explicit KeyIndex(RowArena* arena) : arena_(arena) {}
  ~KeyIndex() { release(); }
  KeyIndex(const KeyIndex&) = delete;
  KeyIndex& operator=(const KeyIndex&) = delete;

  // Rows that fit before the next resize().
  size_t capacity() const { return capacity_; }
  size_t lines() const { return lines_.load(std::memory_order_relaxed); }
  size_t memory_bytes() const { return lines() * 64; }
  static size_t lines_for(size_t rows);  // the least number of lines that holds `rows`

  // Drops all entries and makes room: `lines` lines, row numbers below `numbers`.
  void resize(size_t lines, size_t numbers);
  void release();

  // A hint, safe beside any other call: it only computes an address.
  void prefetch(uint64_t hash) const {
    // Arithmetic on numbers: with a torn pair the address may lie anywhere.
    const auto base = reinterpret_cast<uintptr_t>(data_.load(std::memory_order_relaxed));
    _mm_prefetch(reinterpret_cast<const char*>(base + line_of(hash, lines()) * 64), _MM_HINT_T0);
  }

  // Number of the first row for which `same(number)` holds among those with this fingerprint, or
  // kNone. With `same` always true: the likely row, unverified.
  template <typename Same>
  uint32_t find(uint64_t hash, const Same& same) const {
    const size_t count = lines();
    if (count == 0) return kNone;
    const char* base = data_.load(std::memory_order_relaxed);
    const uint32_t tag = tag_of(hash);
    for (size_t line = line_of(hash, count);; line = line + 1 < count ? line + 1 : 0) {
      const char* at = base + line * 64;
      for (uint32_t m = matches(at, ~0U << number_bits_, tag); m != 0; m &= m - 1) {
        const uint32_t number = number_at(at, static_cast<uint32_t>(__builtin_ctz(m)));
        if (number != kNone && same(number)) return number;
      }
      if (number_at(at, kLineEntries - 1) == kNone) return kNone;  // lines fill from the front
    }
  }
  // Lines that a look-up of the row `number` with this hash reads. For figures.
  size_t lines_read(uint64_t hash, uint32_t number) const;
  // Adds an entry; the key must be absent and capacity() not reached.
  void insert(uint64_t hash, uint32_t number);

 private:
  static size_t line_of(uint64_t hash, size_t lines) {
    return ((hash & 0xffffffffU) * lines) >> 32;
  }
  uint32_t tag_of(uint64_t hash) const { return static_cast<uint32_t>(hash >> 32) << number_bits_; }
  // kNone for an empty entry.
  uint32_t number_at(const char* line, uint32_t i) const {
    uint32_t entry;
    __builtin_memcpy(&entry, line + 4 * i, 4);
    return (entry & ((1U << number_bits_) - 1)) - 1;
  }
  // Which entries of a line equal `value` in the bits of `mask`.
  static uint32_t matches(const char* line, uint32_t mask, uint32_t value) {
    const auto* p = reinterpret_cast<const __m256i*>(line);
    const __m256i m = _mm256_set1_epi32(static_cast<int>(mask));
    const __m256i v = _mm256_set1_epi32(static_cast<int>(value));
    return bits(_mm256_cmpeq_epi32(_mm256_and_si256(_mm256_load_si256(p), m), v),
                _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_load_si256(p + 1), m), v));
  }
  static uint32_t bits(__m256i low, __m256i high) {
    return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(low))) |
           static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(high))) << 8;
  }

  RowArena* arena_;
  // Atomic only so that prefetch() may race with resize(); a torn pair is a useless hint.
  std::atomic<char*> data_ = nullptr;
  std::atomic<size_t> lines_ = 0;
  size_t capacity_ = 0;
  uint32_t number_bits_ = 16;
};

}  // namespace flux
