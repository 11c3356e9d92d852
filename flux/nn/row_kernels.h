// AVX-512 passes over rows: dot products of one-unit layers, and embedding rows in and out. Raw
// pointers only, because the files that implement it may include nothing but intrinsics.
// Pure functions over caller's memory, any thread. The caller asks base/cpu.h first. Tensors may be
// read up to 64 bytes past their end (NetMemory leaves room).
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

}  // namespace flux
