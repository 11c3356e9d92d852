// FcProducts: the three matrix products of one fully connected layer, y = f(x W + b), cut so that a
// team can work on one batch.
//
//   forward: by rows.   backward: by rows, keep() then backward_data().   weights: by parts of dW.
//
// It runs on the kernels of gemm_kernels.h that the CPU has. All tensors are fixed when it is made.
// x and dz share one type, the compute type; y and dx may be of either. A cross layer
// (ops/cross.cc) rides on the products: y = scale * (x W + b) + plus. With skip_x, columns of x
// and dz that are zero in the whole batch are left out of the products (live_columns.h). Which ones
// those are is known when all rows have been looked at: look_x(), then narrow_forward() before
// forward(), look_dz() and narrow_backward() before keep(). Threads: calls for different rows or
// parts at the same time; what is about the batch (set_parameters(), begin_*()) by one, between
// them. Failure: only when made.
#pragma once

#include <memory>
#include <vector>

#include "flux/base/status.h"
#include "flux/nn/gemm_kernels.h"
#include "flux/nn/live_columns.h"
#include "flux/nn/net_memory.h"
#include "flux/nn/tensor.h"

namespace flux {

struct FcShape {
  Tensor x, y, dz;
  // Unset: not wanted. Its width may be less than x's; it may lie over x, since keep() runs before
  // backward_data().
  Tensor dx;
  bool dx_add = false;   // add to dx instead of overwriting it
  bool dx_mask = false;  // multiply dx by (x > 0)
  bool relu = false;     // f is relu, else nothing
  // All of the compute type. Unset: not there.
  Tensor scale, plus;  // y = scale * f(x W + b) + plus
  Tensor kept;         // where f(x W + b) goes then
  Tensor dx_plus;      // added to dx
  // The weight must then stay where it was given until the next one is, and be finite: what a
  // column of zeros meets is not looked at. NaN in x still reaches y, and NaN in dz db.
  bool skip_x = false, skip_dz = false;
  // Nobody else works between keep() and backward_weights(): what is kept lies in NetMemory's
  // scratch.
  bool alone = false;
  uint32_t batch_max = 0;
  uint32_t members = 1;  // of the team: how finely dW is cut
};

class FcProducts {
 public:
  FcProducts(const FcShape& shape, NetMemory& memory, const GemmKernels& kernels);

  // [in][units], which stays where it is, and [units].
  void set_parameters(const float* weight, const float* bias);
  uint32_t pack_parts() const;
  void pack(uint32_t part);

  void forward(uint32_t first, uint32_t end);
  // Keeps what the weights' gradient wants of these rows of x and dz.
  void keep(uint32_t first, uint32_t end, uint32_t batch);
  void backward_data(uint32_t first, uint32_t end);
  // Parts of dw [in][units] and db [units], overwritten, when all rows are kept.
  uint32_t weight_parts() const;
  void backward_weights(uint32_t batch, uint32_t part, float* dw, float* db);

  bool looks_forward() const { return skip_x_; }
  bool looks_backward() const { return skip_x_ || skip_dz_; }  // x's dead columns are dx's, too
  void look_x(uint32_t first, uint32_t end);
  void look_dz(uint32_t first, uint32_t end);
  uint32_t begin_narrow_forward(uint32_t batch);
  void narrow_forward(uint32_t part);
  uint32_t begin_narrow_backward(uint32_t batch);
  void narrow_backward(uint32_t part);

  // The same, whole: for who has the batch to himself.
  void set_all_parameters(const float* weight, const float* bias);
  void forward_all(uint32_t batch);
  void backward_weights_all(uint32_t batch, float* dw, float* db);
  void backward_data_all(uint32_t batch) { backward_data(0, batch); }

 private:
  struct Panel {
    uint32_t column, columns;
  };
  size_t units(size_t elements) const;
  size_t depth(size_t elements) const;
  uint32_t rows_per_part() const;
  Gemm into(const Tensor& c, uint32_t rows) const;
  void read_rows(const Tensor& a, Gemm* g) const;
  void read_kept(uint32_t batch, uint32_t panel, Gemm* g);
  void weights_panel(uint32_t batch, uint32_t part, float* dw, float* db);
  void weights_rows(uint32_t batch, uint32_t part, float* dw, float* db);
  void sum_dz(uint32_t batch);
  void take_sums(uint32_t batch, const Panel& panel, float* db);
  void find_panels();
  size_t place_scratch(char* base);
  void pack_strips(uint32_t first, uint32_t last);

  FcShape s_;
  size_t pair_;
  bool packs_dz_;  // else the product reads its rows where they are
  const GemmKernels& kernels_;
  NetMemory& memory_;
  bool skip_x_, skip_dz_;
  LiveColumns live_x_, live_dz_;
  Tensor x_, dz_, dx_;  // without dead columns
  bool narrow_dx_ = false;
  const float* weight_given_ = nullptr;
  bool packed_ = false, transposed_packed_ = false;  // the whole weight
  std::vector<Panel> panels_;                        // of dW
  float *bias_, *sums_, *weight_, *transposed_ = nullptr, *kept_x_ = nullptr, *kept_dz_ = nullptr;
  size_t sums_stride_;
  uint32_t *marks_x_ = nullptr, *marks_dz_ = nullptr;  // live columns of each kSumRows rows
  void *squeezed_x_ = nullptr, *squeezed_dz_ = nullptr, *squeezed_dx_ = nullptr;
  float* small_ = nullptr;  // a weight, or its gradient, of few rows and columns
};

// Null where the CPU lacks what it needs.
std::unique_ptr<FcProducts> make_products_on(const GemmKernels* kernels, const FcShape& shape,
                                             NetMemory& memory);
// The best that this CPU has for that type; null: none.
const GemmKernels* best_gemm_kernels(const FcShape& shape);
Result<std::unique_ptr<FcProducts>> make_products(const FcShape& shape, NetMemory& memory);

}  // namespace flux
