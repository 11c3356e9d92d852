// Looking up values: the entries of a dictionary that indices name, in their order.
//
// Dictionaries are larger than the nearest cache, and columns are read by turns, so that most of
// the time goes to waiting for entries. In a long turn the dictionary stays near if what is written
// does not push it out: that goes past the caches.
// Pure functions. Whoever calls them has held the indices against the size of the dictionary.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include <immintrin.h>

namespace flux::parquet_plugin {

// Asks for all entries in order, if those are no more lines of the cache than values are looked up,
// at random.
template <typename T>
void fetch_entries(std::span<const T> entries, size_t values) {
  constexpr size_t kLine = 64;
  if (entries.size_bytes() > values * kLine) return;
  const auto* const begin = reinterpret_cast<const char*>(entries.data());
  for (size_t at = 0; at < entries.size_bytes(); at += kLine) __builtin_prefetch(begin + at);
}

template <typename T>
void put_entries(const T* entries, std::span<const uint32_t> indices, T* to) {
  for (size_t i = 0; i < indices.size(); ++i) to[i] = entries[indices[i]];
}

// The same past the caches; end_stream() before another thread may read it.
inline void stream_entries(const uint64_t* entries, std::span<const uint32_t> indices,
                           uint64_t* to) {
  for (size_t i = 0; i < indices.size(); ++i)
    _mm_stream_si64(reinterpret_cast<long long*>(to + i),
                    static_cast<long long>(entries[indices[i]]));
}
inline void stream_entries(const float* entries, std::span<const uint32_t> indices, float* to) {
  for (size_t i = 0; i < indices.size(); ++i)
    _mm_stream_si32(reinterpret_cast<int*>(to + i), std::bit_cast<int>(entries[indices[i]]));
}
inline void end_stream() {
  _mm_sfence();
}

}  // namespace flux::parquet_plugin
