// The products of skip_gram_loss: a vector against some rows, and sums of rows. Raw pointers only,
// because the file that implements them for AVX-512 may include nothing but intrinsics.
//
// Rows lie one after the other, `width` floats each, a multiple of kSkipGramLanes; the numbers
// behind a row's own dimensions are zero.
// Pure functions over caller's memory, any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flux {

constexpr uint32_t kSkipGramLanes = 16;
constexpr uint32_t kSkipGramRowsAtOnce = 4;

struct SkipGramKernels {
  // scores[r] = <x, row r>. Works on groups of kSkipGramRowsAtOnce rows: rows and scores behind
  // `count` are read and written up to the next multiple.
  void (*dots)(const float* x, const float* rows, uint32_t width, uint32_t count, float* scores);
  // out = (add ? out : 0) + the sum of factors[r * stride] * row r.
  void (*combine)(const float* factors, size_t stride, const float* rows, uint32_t width,
                  uint32_t count, bool add, float* out);
};

const SkipGramKernels& skip_gram_kernels_avx2();
const SkipGramKernels& skip_gram_kernels_avx512();  // where base/cpu.h says so

}  // namespace flux
