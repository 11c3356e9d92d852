// Hashes: mix64 (a bijection, for keys), hash_bytes (XXH3, for checksums and stream hashes) and
// draws from a hash, which give the same number wherever and whenever they are asked.
// Pure functions; safe everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace flux {

// A bijective mixer of 64 bits: every input bit moves every output bit.
constexpr uint64_t mix64(uint64_t x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ULL;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ULL;
  x ^= x >> 32;
  return x;
}

constexpr uint64_t hash_pair(uint64_t a, uint64_t b) {
  return mix64(a + 0x9e3779b97f4a7c15ULL * (b + 1));
}

// Uniform in [0, 1) with 24 bits, exact in float: the i-th draw of stream (key, seed).
constexpr float hash_uniform(uint64_t key, uint64_t seed, uint64_t i) {
  return static_cast<float>(hash_pair(hash_pair(key, seed), i) >> 40) * 0x1p-24F;
}

uint64_t hash_bytes(const void* data, size_t size, uint64_t seed = 0);
inline uint64_t hash_bytes(std::string_view text, uint64_t seed = 0) {
  return hash_bytes(text.data(), text.size(), seed);
}
template <typename T>
uint64_t hash_span(std::span<const T> values, uint64_t seed = 0) {
  return hash_bytes(values.data(), values.size_bytes(), seed);
}

// hash_bytes over data that arrives in pieces: the result equals that of the whole.
class StreamHasher {
 public:
  StreamHasher();
  ~StreamHasher();
  StreamHasher(const StreamHasher&) = delete;
  StreamHasher& operator=(const StreamHasher&) = delete;
  void reset();  // as if new
  void update(const void* data, size_t size);
  uint64_t digest() const;

 private:
  void* state_;
};

}  // namespace flux
