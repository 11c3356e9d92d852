// The fp32 kernels of gemm_kernels.h. Includes nothing that defines shared inline functions.
#include <immintrin.h>

#include "flux/nn/gemm_kernels.h"
#include "flux/nn/row_kernels.h"

namespace flux {
namespace {

#include "flux/nn/vectors_avx512.inc"

using Element = float;
using Unit = float;
constexpr uint32_t kPair = 1;
constexpr uint32_t kRowsA = 8, kVectors = 3;  // 24 sums
constexpr uint32_t kRowBlock = 32;
constexpr uint32_t kAhead = 8;

inline __m512 fma_units(__m512 sum, __m512 a, __m512 b) {
  return _mm512_fmadd_ps(a, b, sum);
}
inline __m512 load_pair_rows(const float* row, size_t, bool, __mmask16 lanes) {
  return _mm512_maskz_loadu_ps(lanes, row);
}
inline __m512 load_units(const float* from, uint32_t left) {
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>(left >= 16 ? 0xffffU : (1U << left) - 1U),
                               from);
}
inline __m512 widen_units(__m512 units) {
  return units;
}
// Nearest, ties to even; only used when an fp32 product ends in a bf16 tensor.
inline void store_bf16(uint16_t* to, __mmask16 lanes, __m512 value) {
  const __m512i bits = _mm512_castps_si512(value);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i bias = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
  const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, bias), 16);
  const __m512i nan = _mm512_or_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(0x40));
  const __mmask16 is_nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  const __m512i result = _mm512_mask_mov_epi32(rounded, is_nan, nan);
  _mm256_mask_storeu_epi16(to, lanes, _mm512_cvtepi32_epi16(result));
}

inline __m512 load_floats(const float* from, __mmask16 lanes) {
  return _mm512_maskz_loadu_ps(lanes, from);
}
inline void store_floats(float* to, __mmask16 lanes, __m512 value) {
  _mm512_mask_storeu_ps(to, lanes, value);
}
inline void store_floats(float* to, __m512 value) {
  _mm512_storeu_ps(to, value);
}

#include "flux/nn/gemm_tile.inc"
#include "flux/nn/row_kernels.inc"

}  // namespace

const GemmKernels& gemm_kernels_avx512() {
  static constexpr GemmKernels kKernels = {
      gemm, panel_columns, pack_b, pack_weight, weight_strips, strip_rows, pack_a, kDepth, kRowsA};
  return kKernels;
}

void dot_forward_f32(const DotRows& rows, float bias, float* y) {
  dot_forward(rows, bias, y);
}
void dot_backward_f32(const DotRows& rows, const float* g, float* dw) {
  dot_backward(rows, g, dw);
}
void gather_f32(const RowMoves& moves, const float* rows) {
  return moves.dim <= kLanes ? gather_narrow(moves, rows) : gather(moves, rows);
}
void scatter_f32(const RowMoves& moves, float* rows) {
  scatter(moves, rows);
}
void collect_f32(const RowCollection& rows, float* gradient) {
  collect(rows, gradient);
}
void cross_backward_f32(const CrossRows& rows) {
  cross_backward(rows);
}
void mask_relu_f32(uint32_t batch, uint32_t width, const RowsAt& y, const RowsAt& g) {
  mask_relu(batch, width, y, g);
}
void fm_forward_f32(const FmRows& rows, float* y) {
  fm_forward(rows, y);
}
void fm_backward_f32(const FmRows& rows, const float* g) {
  fm_backward(rows, g);
}

}  // namespace flux
