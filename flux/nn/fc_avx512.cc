// FcProducts on gemm_kernels.h.
#include <algorithm>
#include <cstring>

#include "flux/base/buffer.h"
#include "flux/base/cpu.h"
#include "flux/nn/fc_products.h"
#include "flux/nn/gemm_kernels.h"

namespace flux {
namespace {

size_t round_up(size_t n, size_t unit) {
  return (n + unit - 1) / unit * unit;
}

class Avx512Products : public FcProducts {
 public:
  explicit Avx512Products(const FcShape& shape)
      : s_(shape),
        pair_(shape.x.type == DType::kBf16 ? 2 : 1),
        kernels_(pair_ == 2 ? gemm_kernels_bf16() : gemm_kernels_f32()),
        bias_(round_up(shape.y.width, 16)),
        sums_(round_up(shape.y.width, 16)) {
    const size_t in = s_.x.width, n = s_.y.width;
    // Room for the prefetches and full vectors at the end.
    constexpr size_t kSlack = 1024;
    weight_.resize_discard(units(in) * round_up(n, 16) + kSlack);
    if (s_.dx) transposed_.resize_discard(units(n) * round_up(s_.dx.width, 16) + kSlack);
    a_.resize_discard(units(s_.batch_max) * round_up(in, 16) + kSlack);
    b_.resize_discard(units(s_.batch_max) * round_up(n, 16) + kSlack);
    bias_.fill(0);
  }

  void set_parameters(const float* weight, const float* bias) override {
    kernels_.pack_weight(weight, s_.x.width, s_.y.width, weight_.data());
    if (s_.dx) kernels_.pack_transposed(weight, s_.dx.width, s_.y.width, transposed_.data());
    std::copy(bias, bias + s_.y.width, bias_.data());
  }

  void forward(uint32_t batch) override {
    Gemm g = into(s_.y, batch);
    read_rows(s_.x, &g);
    g.b = weight_.data();
    g.bias = bias_.data();
    g.relu = s_.relu;
    kernels_.gemm(g);
  }

  void backward_data(uint32_t batch) override {
    Gemm g = into(s_.dx, batch);
    read_rows(s_.dz, &g);
    g.b = transposed_.data();
    g.add = s_.dx_add;
    if (s_.dx_mask) {
      g.mask = s_.x.data;
      g.mask_stride = s_.x.stride;
    }
    kernels_.gemm(g);
  }

  void backward_weights(uint32_t batch, float* dw, float* db) override {
    const uint32_t in = s_.x.width, n = s_.y.width;
    kernels_.pack_a(s_.x.data, s_.x.stride, batch, in, a_.data());
    kernels_.pack_b(s_.dz.data, s_.dz.stride, batch, n, b_.data(), sums_.data());
    std::copy(sums_.begin(), sums_.begin() + n, db);
    Gemm g = into({dw, n, n, DType::kF32}, in);
    g.k = static_cast<uint32_t>(units(batch));
    g.a = a_.data();
    g.a_packed = true;
    g.b = b_.data();
    kernels_.gemm(g);
  }

 private:
  size_t units(size_t elements) const { return round_up(elements, pair_) / pair_; }
  static Gemm into(const Tensor& c, uint32_t rows) {
    Gemm g;
    g.m = rows;
    g.n = c.width;
    g.c = c.data;
    g.c_stride = c.stride;
    g.c_bf16 = c.type == DType::kBf16;
    return g;
  }
  void read_rows(const Tensor& a, Gemm* g) const {
    g->k = static_cast<uint32_t>(units(a.width));
    g->a = a.data;
    g->a_stride = a.stride / pair_;
  }

  FcShape s_;
  size_t pair_;
  const GemmKernels& kernels_;
  Buffer<float> bias_, sums_, weight_, transposed_, a_, b_;
};

}  // namespace

std::unique_ptr<FcProducts> make_avx512_products(const FcShape& shape) {
  const bool bf16 = shape.x.type == DType::kBf16;
  if (!(bf16 ? cpu_has_avx512_bf16() : cpu_has_avx512())) return nullptr;
  // Units of bf16 pairs are read as 4 aligned-enough bytes; odd slices are left to oneDNN.
  if (bf16 && (shape.x.stride % 2 != 0 || shape.dz.stride % 2 != 0)) return nullptr;
  return std::make_unique<Avx512Products>(shape);
}

}  // namespace flux
