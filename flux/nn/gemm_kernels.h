// Matrix products for the shapes of CTR nets: what FcProducts needs, for every CPU that runs flux.
//
// The weights are packed once per step in both directions, bias, relu and the relu mask of the
// backward pass ride on the products, gradients may overwrite values, and the next rows are
// prefetched while the current ones are multiplied (bench/net_bench.cc measures all of it).
//
// Everything is counted in units of 4 bytes along k: one float, or two neighbours in bf16; so all
// share one source (gemm_tile.inc), compiled for AVX2, AVX-512 and AVX512-BF16. On CPUs with AMX
// bf16 is multiplied in its tile registers (kernels_amx.cc). B lies in panels of 48 or 32 (at the
// end 16) columns, of 32 for AMX, of 16 (at the end 8) for AVX2, each [k][columns] units,
// zero-padded. A packed lies in panels of `a_rows` rows, each [k][a_rows] units, or in the tiles of
// AMX.
// Every part can be done alone, by any thread and in any order: rows of C, panels of B, rows that
// are packed. Whoever does what, each number of the result is one sum over k in rising order, so
// the same inputs give the same bits. Pure functions over caller's memory.
// NaN and infinities go the way of IEEE arithmetic; relu keeps NaN, and a mask that is NaN is not
// above 0, so its gradient is 0.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flux {

// Rows of the compute type beside C.
struct GemmRows {
  void* data = nullptr;
  size_t stride = 0;  // elements
};

struct Gemm {
  uint32_t m = 0, n = 0, k = 0;  // C is [m][n]; k in units
  bool a_packed = false;
  bool c_bf16 = false;
  bool relu = false, add = false;  // see below
  const void* a = nullptr;
  size_t a_stride = 0;      // units from row to row; unused if packed
  const void* b = nullptr;  // panels, unless:
  size_t b_stride = 0;      // units from row to row of a plain B; only with a_packed
  float* b_sums = nullptr;  // with it: where sums of B's columns go (n rounded up to 16)
  uint32_t panels = ~0U;    // of B, from the first of those n columns on; the others are left alone
  void* c = nullptr;
  size_t c_stride = 0;  // elements
  // Then, in this order: + bias, relu (x < 0 ? 0 : x), written to `kept`, * scale, + plus, + old C
  // (`add`), masked by (mask > 0).
  const float* bias = nullptr;  // room for n rounded up to 16
  GemmRows kept, scale, plus, mask;
};

// Rows of a weight that are packed together.
struct StripRows {
  uint32_t first, end;
};

struct GemmKernels {
  void (*gemm)(const Gemm& gemm);
  // Columns of the next panel of B where so many are left.
  uint32_t (*panel_columns)(uint32_t left);
  // Rows [begin, end) of `rows` x n of the compute type into panels of B; the sums of those rows'
  // columns overwrite `sums` (room for n rounded up to 16). `begin` is a multiple of kGemmRows.
  void (*pack_b)(const void* from, size_t stride, uint32_t begin, uint32_t end, uint32_t rows,
                 uint32_t n, void* to, float* sums);
  // B panels of an fp32 weight [rows][n] (null: not wanted), and of the transpose of its first
  // `transposed_rows` rows (which may be none); strips [first, last) of weight_strips().
  void (*pack_weight)(const float* from, uint32_t rows, uint32_t n, void* to,
                      uint32_t transposed_rows, void* transposed, uint32_t first, uint32_t last);
  uint32_t (*weight_strips)(uint32_t rows, uint32_t transposed_rows);
  StripRows (*strip_rows)(uint32_t rows, uint32_t transposed_rows, uint32_t strip);
  // Packed A = the transpose of `rows` x m of the compute type, its rows [begin, end); k runs along
  // the rows. `begin` is a multiple of kGemmRows.
  void (*pack_a)(const void* from, size_t stride, uint32_t begin, uint32_t end, uint32_t rows,
                 uint32_t m, void* to);
  uint32_t depth = 1;   // packed matrices have k rounded up to this many units
  uint32_t a_rows = 8;  // of a panel of packed A: parts of C begin at multiples of it
};

constexpr uint32_t kGemmRows = 64;

// The caller asks base/cpu.h first.
const GemmKernels& gemm_kernels_avx2();    // fp32
const GemmKernels& gemm_kernels_avx512();  // fp32
const GemmKernels& gemm_kernels_bf16();
const GemmKernels& gemm_kernels_amx();  // bf16

}  // namespace flux
