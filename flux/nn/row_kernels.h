// AVX-512 passes over rows: dot products of one-unit layers, embedding rows in and out, what a
// cross layer, relu and fm do beside the products. Raw pointers only, because the files that
// implement it may include nothing but intrinsics. Pure functions over caller's memory, any thread.
// The caller asks base/cpu.h first. Tensors may be read up to 64 bytes past their end (NetMemory
// leaves room).
#pragma once

#include <cstddef>
#include <cstdint>

namespace flux {

// See dot_kernels.h; strides in elements. dx has the type of x.
struct DotRows {
  const void* x = nullptr;
  size_t stride = 0;
  uint32_t batch = 0, width = 0;
  const float* w = nullptr;
  void* dx = nullptr;  // null: not wanted
  size_t dx_stride = 0;
  uint32_t dx_width = 0;
  bool add = false, mask = false;
};
void dot_forward_f32(const DotRows& rows, float bias, float* y);
void dot_forward_bf16(const DotRows& rows, float bias, float* y);
void dot_backward_f32(const DotRows& rows, const float* g, float* dw);
void dot_backward_bf16(const DotRows& rows, const float* g, float* dw);

// See gather.h: slots side by side. `dim` up to any size.
struct RowMoves {
  const uint32_t* index = nullptr;  // [batch][slots]
  uint32_t batch = 0, slots = 0, dim = 0;
  void* values = nullptr;  // gathered into, or scattered from
  size_t stride = 0;       // elements
};
void gather_f32(const RowMoves& moves, const float* rows);
void gather_bf16(const RowMoves& moves, const float* rows);
void scatter_f32(const RowMoves& moves, float* rows);
void scatter_bf16(const RowMoves& moves, float* rows);

// See collect_rows() of gather.h.
struct RowCollection {
  const uint32_t *row_begin = nullptr, *occurrences = nullptr;
  uint32_t first_row = 0, end_row = 0, slots = 0, dim = 0;
  bool sum = false;
  const void* values = nullptr;
  size_t stride = 0;  // elements
};
void collect_f32(const RowCollection& rows, float* gradient);
void collect_bf16(const RowCollection& rows, float* gradient);

// A matrix of the kernels' type; stride in elements.
struct RowsAt {
  void* data = nullptr;
  size_t stride = 0;
};

// Backward of y = x0 * z + x: dz = dy * x0, and dx0 = dy * z (first `dx0_width` columns, or none).
struct CrossRows {
  uint32_t batch = 0, width = 0;
  RowsAt dy, x0, z, dz, dx0;
  uint32_t dx0_width = 0;
  bool add = false;  // to dx0
};
void cross_backward_f32(const CrossRows& rows);
void cross_backward_bf16(const CrossRows& rows);

// g = g where y > 0, else 0.
void mask_relu_f32(uint32_t batch, uint32_t width, const RowsAt& y, const RowsAt& g);
void mask_relu_bf16(uint32_t batch, uint32_t width, const RowsAt& y, const RowsAt& g);

// See ops/fm.cc: x is [slots][dim] in each row, one number per example comes out.
struct FmRows {
  uint32_t batch = 0, slots = 0, dim = 0;
  RowsAt x, dx;
  bool add = false;          // to dx
  float* scratch = nullptr;  // slots * dim + 16
};
void fm_forward_f32(const FmRows& rows, float* y);
void fm_forward_bf16(const FmRows& rows, float* y);
void fm_backward_f32(const FmRows& rows, const float* g);
void fm_backward_bf16(const FmRows& rows, const float* g);

}  // namespace flux
