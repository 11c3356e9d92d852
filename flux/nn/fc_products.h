// FcProducts: the three matrix products of one fully connected layer, y = f(x W + b).
//
// Two makers: oneDNN (every CPU) and our own AVX-512 kernels (kernels_avx512.cc, kernels_bf16.cc).
// All tensors are fixed when it is made. x and dz share one type, the compute type; y and dx may
// be of either.
// A cross layer (ops/cross.cc) rides on the AVX-512 products alone: y = scale * (x W + b) + plus.
// Threads: one, like its Net. Failure: only when made.
#pragma once

#include <memory>

#include "flux/base/status.h"
#include "flux/nn/net_memory.h"
#include "flux/nn/tensor.h"

namespace flux {

struct FcShape {
  Tensor x, y, dz;
  // Unset: not wanted. Its width may be less than x's; it may lie over x, since backward_weights()
  // runs before backward_data().
  Tensor dx;
  bool dx_add = false;   // add to dx instead of overwriting it
  bool dx_mask = false;  // multiply dx by (x > 0)
  bool relu = false;     // f is relu, else nothing
  // AVX-512 only, all of the compute type. Unset: not there.
  Tensor scale, plus;  // y = scale * f(x W + b) + plus
  Tensor kept;         // where f(x W + b) goes then
  Tensor dx_plus;      // added to dx
  // AVX-512 only: columns of x and dz that are zero in the whole batch are left out of the products
  // (live_columns.h). The weight must then stay where it was given until the next one is.
  bool skip_zeros = false;
  uint32_t batch_max = 0;
};

class FcProducts {
 public:
  virtual ~FcProducts() = default;
  virtual void set_parameters(const float* weight, const float* bias) = 0;  // [in][units], [units]
  virtual void forward(uint32_t batch) = 0;
  virtual void backward_data(uint32_t batch) = 0;
  // dw [in][units] and db [units] are overwritten.
  virtual void backward_weights(uint32_t batch, float* dw, float* db) = 0;
};

Result<std::unique_ptr<FcProducts>> make_onednn_products(const FcShape& shape, NetMemory& memory);
// Null where the CPU lacks what it needs. `amx`: bf16 in tile registers if it has those.
std::unique_ptr<FcProducts> make_avx512_products(const FcShape& shape, NetMemory& memory,
                                                 bool amx = true);
// The best that this CPU has.
Result<std::unique_ptr<FcProducts>> make_products(const FcShape& shape, NetMemory& memory);

}  // namespace flux
