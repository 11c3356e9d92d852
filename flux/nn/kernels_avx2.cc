// The fp32 kernels of gemm_kernels.h for every CPU that runs flux: tiles of 6 rows by 16 columns.
// Includes nothing that defines shared inline functions.
#include <immintrin.h>

#include "flux/nn/gemm_kernels.h"

namespace flux {
namespace {

// The vectors of AVX2, as vectors_avx512.inc has them. Stores under a mask are slow on some CPUs,
// so whole vectors are told apart by their count.
using Vec = __m256;
using Lanes = uint32_t;
constexpr uint32_t kLanes = 8;

inline Lanes first_lanes(uint32_t n) {
  return n < kLanes ? n : kLanes;
}
inline __m256i mask_of(Lanes lanes) {
  const __m256i places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(lanes)), places);
}
inline Vec zero() {
  return _mm256_setzero_ps();
}
inline Vec all(float x) {
  return _mm256_set1_ps(x);
}
inline Vec load(const float* from) {
  return _mm256_loadu_ps(from);
}
inline Vec load(const float* from, Lanes lanes) {
  return lanes == kLanes ? load(from) : _mm256_maskload_ps(from, mask_of(lanes));
}
inline void store(float* to, Vec value) {
  _mm256_storeu_ps(to, value);
}
inline void store(float* to, Lanes lanes, Vec value) {
  lanes == kLanes ? store(to, value) : _mm256_maskstore_ps(to, mask_of(lanes), value);
}
inline Vec load_bf16(const uint16_t* from, Lanes lanes) {
  uint16_t some[kLanes] = {};
  for (uint32_t i = 0; i < lanes; ++i) some[i] = from[i];
  const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(some));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}
inline Vec add(Vec a, Vec b) {
  return _mm256_add_ps(a, b);
}
inline Vec multiply(Vec a, Vec b) {
  return _mm256_mul_ps(a, b);
}
// x < 0 ? 0 : x, so NaN stays NaN: the second operand is the result then.
inline Vec relu(Vec x) {
  return _mm256_max_ps(_mm256_setzero_ps(), x);
}
// value where x > 0, else 0; NaN is not above 0.
inline Vec where_positive(Vec x, Vec value) {
  return _mm256_and_ps(_mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_GT_OQ), value);
}
// Six rows of packed A; one vector never holds two panels.
inline void store_panels(float* to, size_t, bool, Vec x) {
  _mm_storeu_ps(to, _mm256_castps256_ps128(x));
  _mm_storel_pi(reinterpret_cast<__m64*>(to + 4), _mm256_extractf128_ps(x, 1));
}

// 8 x 8 numbers, in place.
inline void transpose(Vec* x) {
  Vec y[kLanes];
  for (uint32_t i = 0; i < 8; i += 2) {
    y[i] = _mm256_unpacklo_ps(x[i], x[i + 1]);
    y[i + 1] = _mm256_unpackhi_ps(x[i], x[i + 1]);
  }
  for (uint32_t i = 0; i < 8; i += 4) {
    x[i] = _mm256_shuffle_ps(y[i], y[i + 2], 0x44);
    x[i + 1] = _mm256_shuffle_ps(y[i], y[i + 2], 0xee);
    x[i + 2] = _mm256_shuffle_ps(y[i + 1], y[i + 3], 0x44);
    x[i + 3] = _mm256_shuffle_ps(y[i + 1], y[i + 3], 0xee);
  }
  for (uint32_t i = 0; i < 4; ++i) {
    y[i] = _mm256_permute2f128_ps(x[i], x[i + 4], 0x20);
    y[i + 4] = _mm256_permute2f128_ps(x[i], x[i + 4], 0x31);
  }
  for (uint32_t i = 0; i < 8; ++i) x[i] = y[i];
}

using Element = float;
using Unit = float;
constexpr uint32_t kPair = 1;
constexpr uint32_t kRowsA = 6, kVectors = 2;  // 12 sums, of 16 registers
constexpr uint32_t kRowBlock = 96;
constexpr uint32_t kAhead = 8;

inline Vec fma_units(Vec sum, Vec a, Vec b) {
  return _mm256_fmadd_ps(a, b, sum);
}
inline Vec load_pair_rows(const float* row, size_t, bool, Lanes lanes) {
  return load(row, lanes);
}
inline Vec load_units(const float* from, uint32_t left) {
  return load(from, first_lanes(left));
}
inline Vec widen_units(Vec units) {
  return units;
}
inline Vec load_floats(const float* from, Lanes lanes) {
  return load(from, lanes);
}
inline void store_floats(float* to, Lanes lanes, Vec value) {
  store(to, lanes, value);
}
// Nearest, ties to even; only used when an fp32 product ends in a bf16 tensor.
inline void store_bf16(uint16_t* to, Lanes lanes, Vec value) {
  uint32_t bits[kLanes];
  _mm256_storeu_ps(reinterpret_cast<float*>(bits), value);
  const int nan = _mm256_movemask_ps(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
  for (uint32_t i = 0; i < lanes; ++i) {
    const uint32_t rounded = bits[i] + 0x7fff + (bits[i] >> 16 & 1);
    to[i] = static_cast<uint16_t>((nan >> i & 1) != 0 ? bits[i] >> 16 | 0x40 : rounded >> 16);
  }
}

#include "flux/nn/gemm_tile.inc"

}  // namespace

const GemmKernels& gemm_kernels_avx2() {
  static constexpr GemmKernels kKernels = {
      gemm, panel_columns, pack_b, pack_weight, weight_strips, strip_rows, pack_a, kDepth, kRowsA};
  return kKernels;
}

}  // namespace flux
