// AVX-512 passes over the columns of a matrix: which of them hold anything, rows without the
// others, and back. Raw pointers only, as the file that implements it may include nothing but
// intrinsics. Pure functions over caller's memory, any thread; the caller asks
// cpu_has_avx512_vbmi2() first. Columns are bits: column c is bit c % 32 of word c / 32. What
// mark() and spread() read may be read up to 64 bytes past its end.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flux {

struct ColumnKernels {
  // Sets the bits of columns that have a number other than 0 in one of `rows` rows; clears none.
  void (*mark)(const void* from, size_t stride, uint32_t rows, uint32_t width, uint32_t* live);
  // Rows of the live columns alone, then zeros: up to 64 bytes of them, but not beyond the stride
  // of the last row.
  void (*squeeze)(const void* from, size_t stride, uint32_t rows, uint32_t width,
                  const uint32_t* live, void* to, size_t to_stride);
  // The way back: columns that are not live become 0. Writes `width` columns, nothing else.
  void (*spread)(const void* from, size_t stride, uint32_t rows, uint32_t width,
                 const uint32_t* live, void* to, size_t to_stride);
};

const ColumnKernels& column_kernels_f32();
const ColumnKernels& column_kernels_bf16();

}  // namespace flux
