// The bf16 kernels of gemm_kernels.h. Includes nothing that defines shared inline functions.
#include <immintrin.h>

#include "flux/nn/gemm_kernels.h"
#include "flux/nn/row_kernels.h"

namespace flux {
namespace {

#include "flux/nn/bf16_units.inc"

constexpr uint32_t kRowsA = 8, kVectors = 3;  // 24 sums
constexpr uint32_t kRowBlock = 32;
constexpr uint32_t kAhead = 8;

inline __m512 fma_units(__m512 sum, __m512 a, __m512 b) {
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}

#include "flux/nn/gemm_tile.inc"
#include "flux/nn/row_kernels.inc"

}  // namespace

const GemmKernels& gemm_kernels_bf16() {
  static constexpr GemmKernels kKernels = {
      gemm, panel_columns, pack_b, pack_weight, weight_strips, strip_rows, pack_a, kDepth, kRowsA};
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
void collect_bf16(const RowCollection& rows, float* gradient) {
  collect(rows, gradient);
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
