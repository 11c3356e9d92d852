// The check sum of pages, by carry-less multiplication: several times as fast as Arrow's tables.
//
// It has the name and the contract of Arrow's own function (arrow/util/crc32.h). The libraries that
// a plug-in brings with it look for names in the plug-in first, so libparquet calls this one; where
// it did not, it would call Arrow's, with the same result.
// V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction".
#include <array>

#include <arrow/util/crc32.h>
#include <immintrin.h>

namespace flux::parquet_plugin {
namespace {

constexpr uint32_t kPolynomial = 0xedb88320;  // bits from low to high, as all below

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> out{};
  for (uint32_t i = 0; i < out.size(); ++i) {
    out[i] = i;
    for (int bit = 0; bit < 8; ++bit) out[i] = out[i] >> 1 ^ (out[i] & 1 ? kPolynomial : 0);
  }
  return out;
}
constexpr std::array<uint32_t, 256> kTable = make_table();

// `state`: the remainder so far, its bits inverted, as below.
uint32_t add_bytes(uint32_t state, const uint8_t* data, size_t size) {
  for (size_t i = 0; i < size; ++i) state = kTable[(state ^ data[i]) & 0xff] ^ state >> 8;
  return state;
}

#define FLUX_PCLMUL __attribute__((target("pclmul,sse4.1")))

FLUX_PCLMUL inline __m128i load(const uint8_t* data) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(data));
}

// `part` moved on by the distance that `powers` are of, and `next` added.
FLUX_PCLMUL inline __m128i fold(__m128i part, __m128i powers, __m128i next) {
  return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(part, powers, 0x00), next),
                       _mm_clmulepi64_si128(part, powers, 0x11));
}

// From 128 bits to the remainder: down to 64 bits, then Barrett's division.
FLUX_PCLMUL uint32_t reduce(__m128i sum, __m128i powers) {
  const __m128i low_words = _mm_setr_epi32(~0, 0, ~0, 0);
  sum = _mm_xor_si128(_mm_srli_si128(sum, 8), _mm_clmulepi64_si128(sum, powers, 0x10));
  const __m128i last_power = _mm_set_epi64x(0, 0x163cd6124);
  sum = _mm_xor_si128(_mm_srli_si128(sum, 4),
                      _mm_clmulepi64_si128(_mm_and_si128(sum, low_words), last_power, 0x00));
  const __m128i division = _mm_set_epi64x(0x1f7011641, 0x1db710641);
  __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(sum, low_words), division, 0x10);
  quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low_words), division, 0x00);
  return static_cast<uint32_t>(_mm_extract_epi32(_mm_xor_si128(sum, quotient), 1));
}

// `size`: at least 64, a multiple of 16.
FLUX_PCLMUL uint32_t add_folded(uint32_t state, const uint8_t* data, size_t size) {
  const __m128i by_64 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
  const __m128i by_16 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
  __m128i sums[4];
  for (size_t i = 0; i < 4; ++i) sums[i] = load(data + 16 * i);
  sums[0] = _mm_xor_si128(sums[0], _mm_cvtsi32_si128(static_cast<int>(state)));
  size_t at = 64;
  for (; at + 64 <= size; at += 64)
    for (size_t i = 0; i < 4; ++i) sums[i] = fold(sums[i], by_64, load(data + at + 16 * i));
  __m128i sum = sums[0];
  for (size_t i = 1; i < 4; ++i) sum = fold(sum, by_16, sums[i]);
  for (; at < size; at += 16) sum = fold(sum, by_16, load(data + at));
  return reduce(sum, by_16);
}

uint32_t add(uint32_t state, const uint8_t* data, size_t size) {
  static const bool can_fold =
      __builtin_cpu_supports("pclmul") != 0 && __builtin_cpu_supports("sse4.1") != 0;
  if (!can_fold || size < 64) return add_bytes(state, data, size);
  const size_t folded = size & ~size_t{15};
  return add_bytes(add_folded(state, data, folded), data + folded, size - folded);
}

}  // namespace
}  // namespace flux::parquet_plugin

namespace arrow::internal {

__attribute__((visibility("default"))) uint32_t crc32(uint32_t prev, const void* data,
                                                      size_t length) {
  return ~flux::parquet_plugin::add(~prev, static_cast<const uint8_t*>(data), length);
}

}  // namespace arrow::internal
