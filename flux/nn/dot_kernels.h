// The kernels of a fully connected layer with one unit: memory-bound passes over x, not a GEMM.
// dot_kernels() picks AVX-512 code where the CPU has it, else plain code; both sum in a fixed
// order. Pure functions over caller's memory, any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "flux/nn/operator.h"

namespace flux {

struct DotKernels {
  // y[b] = x[b] . w + bias
  void (*forward)(const Tensor& x, uint32_t batch, const float* w, float bias, float* y);
  // dw = sum of g[b] x[b]; x's gradient (if wanted) = g[b] w, added and masked as `x` asks.
  void (*backward)(const KernelInput& x, uint32_t batch, const float* w, const float* g, float* dw);
};
DotKernels dot_kernels(DType type);
DotKernels plain_dot_kernels();

}  // namespace flux
