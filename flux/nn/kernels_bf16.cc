// The bf16 kernels of gemm_kernels.h. Includes nothing that defines shared inline functions.
#include <immintrin.h>

#include "flux/nn/gemm_kernels.h"
#include "flux/nn/row_kernels.h"

namespace flux {
namespace {

using Element = uint16_t;
using Unit = float;  // two bf16; never computed with as a float
constexpr uint32_t kPair = 2;
constexpr uint32_t kAhead = 8;  // steps of k to prefetch ahead

inline __m512 fma_units(__m512 sum, __m512 a, __m512 b) {
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}
inline __m512 interleave(__m256i low, __m256i high) {
  const __m512i wide = _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16);
  return _mm512_castsi512_ps(_mm512_or_si512(_mm512_cvtepu16_epi32(low), wide));
}
inline __m512 load_pair_rows(const uint16_t* row, size_t stride, bool both, __mmask16 lanes) {
  const __mmask16 second = both ? lanes : static_cast<__mmask16>(0);
  return interleave(_mm256_maskz_loadu_epi16(lanes, row),
                    _mm256_maskz_loadu_epi16(second, row + stride));
}
inline __m512 load_pair_rows(const float* row, size_t stride, bool both, __mmask16 lanes) {
  const __mmask16 second = both ? lanes : static_cast<__mmask16>(0);
  const __m512 low = _mm512_maskz_loadu_ps(lanes, row);
  const __m512 high = _mm512_maskz_loadu_ps(second, row + stride);
  return interleave(reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(low)),
                    reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(high)));
}
// 32 neighbours (or those `left`) of a row as 16 units.
inline __m512 load_units(const float* from, uint32_t left) {
  const uint32_t lanes = left >= 32 ? 0xffffffffU : (1U << left) - 1U;
  const __m512 low = _mm512_maskz_loadu_ps(static_cast<__mmask16>(lanes), from);
  const __m512 high = _mm512_maskz_loadu_ps(static_cast<__mmask16>(lanes >> 16), from + 16);
  return reinterpret_cast<__m512>(_mm512_cvtne2ps_pbh(high, low));
}
inline __m512 widen_units(__m512 units) {
  const __m512i bits = _mm512_castps_si512(units);
  const __m512 low = _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
  const __m512i mask = _mm512_set1_epi32(static_cast<int>(0xffff0000U));
  return _mm512_add_ps(low, _mm512_castsi512_ps(_mm512_and_si512(bits, mask)));
}
inline void store_bf16(uint16_t* to, __mmask16 lanes, __m512 value) {
  _mm256_mask_storeu_epi16(to, lanes, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(value)));
}

inline __m512 load_floats(const uint16_t* from, __mmask16 lanes) {
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, from));
  return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}
inline void store_floats(uint16_t* to, __mmask16 lanes, __m512 value) {
  store_bf16(to, lanes, value);
}
inline void store_floats(uint16_t* to, __m512 value) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(value)));
}

#include "flux/nn/gemm_tile.inc"
#include "flux/nn/row_kernels.inc"

}  // namespace

const GemmKernels& gemm_kernels_bf16() {
  static constexpr GemmKernels kKernels = {gemm, pack_b, pack_weight, pack_a};
  return kKernels;
}

void dot_forward_bf16(const DotRows& rows, float bias, float* y) {
  dot_forward(rows, bias, y);
}
void dot_backward_bf16(const DotRows& rows, const float* g, float* dw) {
  dot_backward(rows, g, dw);
}
void gather_bf16(const RowMoves& moves, const float* rows) {
  return moves.dim <= kLanes ? gather_narrow(moves, rows) : gather(moves, rows);
}
void scatter_bf16(const RowMoves& moves, float* rows) {
  scatter(moves, rows);
}
void cross_backward_bf16(const CrossRows& rows) {
  cross_backward(rows);
}
void mask_relu_bf16(uint32_t batch, uint32_t width, const RowsAt& y, const RowsAt& g) {
  mask_relu(batch, width, y, g);
}
void fm_forward_bf16(const FmRows& rows, float* y) {
  fm_forward(rows, y);
}
void fm_backward_bf16(const FmRows& rows, const float* g) {
  fm_backward(rows, g);
}

}  // namespace flux
