#include "flux/nn/dot_kernels.h"

#include <algorithm>

#include "flux/base/cpu.h"
#include "flux/nn/row_kernels.h"

namespace flux {
namespace {

// Columns at a time in the plain versions: they fit on the stack and in L1.
constexpr uint32_t kColumns = 512;

void plain_forward(const Tensor& x, uint32_t batch, const float* w, float bias, float* y) {
  constexpr uint32_t kLanes = 16;
  float scratch[kColumns];
  for (uint32_t b = 0; b < batch; ++b) {
    float sums[kLanes] = {};
    for (uint32_t begin = 0; begin < x.width; begin += kColumns) {
      const uint32_t n = std::min(kColumns, x.width - begin);
      const float* row = read_row(slice(x, begin, n), b, scratch);
      uint32_t c = 0;
      for (; c + kLanes <= n; c += kLanes)
        for (uint32_t l = 0; l < kLanes; ++l) sums[l] += row[c + l] * w[begin + c + l];
      for (uint32_t l = 0; c < n; ++c, ++l) sums[l] += row[c] * w[begin + c];
    }
    for (uint32_t half = kLanes / 2; half > 0; half /= 2)
      for (uint32_t l = 0; l < half; ++l) sums[l] += sums[l + half];
    y[b] = sums[0] + bias;
  }
}

void plain_backward(const KernelInput& x, uint32_t batch, const float* w, const float* g,
                    float* dw) {
  std::fill(dw, dw + x.value.width, 0.0F);
  float scratch[kColumns], dx[kColumns];
  for (uint32_t begin = 0; begin < x.value.width; begin += kColumns) {
    const uint32_t n = std::min(kColumns, x.value.width - begin);
    const uint32_t end = std::max(begin, std::min(begin + n, x.gradient.width));
    for (uint32_t b = 0; b < batch; ++b) {
      const float* row = read_row(slice(x.value, begin, n), b, scratch);
      for (uint32_t c = 0; c < n; ++c) dw[begin + c] += g[b] * row[c];
      if (!x.gradient || end == begin) continue;
      for (uint32_t c = 0; c < n; ++c) dx[c] = g[b] * w[begin + c];
      if (x.mask_relu)
        for (uint32_t c = 0; c < n; ++c) dx[c] = row[c] > 0 ? dx[c] : 0.0F;
      write_row(slice(x.gradient, begin, end - begin), b, dx, x.add);
    }
  }
}

DotRows rows_of(const Tensor& x, uint32_t batch, const float* w) {
  DotRows rows;
  rows.x = x.data;
  rows.stride = x.stride;
  rows.batch = batch;
  rows.width = x.width;
  rows.w = w;
  return rows;
}

void wide_forward(const Tensor& x, uint32_t batch, const float* w, float bias, float* y) {
  const DotRows rows = rows_of(x, batch, w);
  if (x.type == DType::kF32) return dot_forward_f32(rows, bias, y);
  dot_forward_bf16(rows, bias, y);
}

void wide_backward(const KernelInput& x, uint32_t batch, const float* w, const float* g,
                   float* dw) {
  DotRows rows = rows_of(x.value, batch, w);
  rows.dx = x.gradient.data;
  rows.dx_stride = x.gradient.stride;
  rows.dx_width = x.gradient.width;
  rows.add = x.add;
  rows.mask = x.mask_relu;
  if (x.value.type == DType::kF32) return dot_backward_f32(rows, g, dw);
  dot_backward_bf16(rows, g, dw);
}

}  // namespace

DotKernels dot_kernels(DType type) {
  const bool wide = type == DType::kBf16 ? cpu_has_avx512_bf16() : cpu_has_avx512();
  return wide ? DotKernels{wide_forward, wide_backward} : plain_dot_kernels();
}

DotKernels plain_dot_kernels() {
  return {plain_forward, plain_backward};
}

}  // namespace flux
