// FcProducts on gemm_kernels.h.
#include <algorithm>

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
  Avx512Products(const FcShape& shape, NetMemory& memory, const GemmKernels& kernels)
      : s_(shape), memory_(memory), pair_(shape.x.type == DType::kBf16 ? 2 : 1), kernels_(kernels) {
    const size_t in = s_.x.width, n = s_.y.width, n16 = round_up(n, 16);
    bias_ = memory.allocate_array<float>(n16);
    sums_ = memory.allocate_array<float>(n16);
    weight_ = memory.allocate_array<float>(depth(in) * n16);
    if (s_.dx) transposed_ = memory.allocate_array<float>(depth(n) * round_up(s_.dx.width, 16));
    packed_x_ = depth(s_.batch_max) * round_up(in, 16);
    const size_t packed_dz = pair_ == 1 ? 0 : depth(s_.batch_max) * n16;
    memory.reserve_scratch((packed_x_ + packed_dz) * sizeof(float));
  }

  void set_parameters(const float* weight, const float* bias) override {
    kernels_.pack_weight(weight, s_.x.width, s_.y.width, weight_, s_.dx ? s_.dx.width : 0,
                         transposed_);
    std::copy(bias, bias + s_.y.width, bias_);
  }

  void forward(uint32_t batch) override {
    Gemm g = into(s_.y, batch);
    read_rows(s_.x, &g);
    g.b = weight_;
    g.bias = bias_;
    g.relu = s_.relu;
    g.kept = beside(s_.kept);
    g.scale = beside(s_.scale);
    g.plus = beside(s_.plus);
    kernels_.gemm(g);
  }

  void backward_data(uint32_t batch) override {
    Gemm g = into(s_.dx, batch);
    read_rows(s_.dz, &g);
    g.b = transposed_;
    g.add = s_.dx_add;
    g.plus = beside(s_.dx_plus);
    if (s_.dx_mask) g.mask = beside(s_.x);
    kernels_.gemm(g);
  }

  void backward_weights(uint32_t batch, float* dw, float* db) override {
    const uint32_t in = s_.x.width, n = s_.y.width;
    auto* a = static_cast<float*>(memory_.scratch());
    float* b = a + packed_x_;
    kernels_.pack_a(s_.x.data, s_.x.stride, batch, in, a);
    Gemm g = into({dw, n, n, DType::kF32}, in);
    g.k = static_cast<uint32_t>(units(batch));
    g.a = a;
    g.a_packed = true;
    if (pair_ == 1) {  // rows of dz are what the product reads
      g.b = s_.dz.data;
      g.b_stride = s_.dz.stride;
      g.b_sums = sums_;
    } else {
      kernels_.pack_b(s_.dz.data, s_.dz.stride, batch, n, b, sums_);
      g.b = b;
    }
    kernels_.gemm(g);
    std::copy(sums_, sums_ + n, db);
  }

 private:
  size_t units(size_t elements) const { return round_up(elements, pair_) / pair_; }
  size_t depth(size_t elements) const { return round_up(units(elements), kernels_.depth); }
  static GemmRows beside(const Tensor& t) { return {t.data, t.stride}; }
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
  NetMemory& memory_;
  size_t pair_;
  const GemmKernels& kernels_;
  float *bias_, *sums_, *weight_, *transposed_ = nullptr;
  size_t packed_x_;  // units in scratch before packed dz
};

}  // namespace

std::unique_ptr<FcProducts> make_avx512_products(const FcShape& shape, NetMemory& memory,
                                                 bool amx) {
  const bool bf16 = shape.x.type == DType::kBf16;
  if (!(bf16 ? cpu_has_avx512_bf16() : cpu_has_avx512())) return nullptr;
  // Units of bf16 pairs are read as 4 aligned-enough bytes; odd slices are left to oneDNN.
  if (bf16 && (shape.x.stride % 2 != 0 || shape.dz.stride % 2 != 0)) return nullptr;
  const GemmKernels& wide = amx && cpu_has_amx_bf16() ? gemm_kernels_amx() : gemm_kernels_bf16();
  return std::make_unique<Avx512Products>(shape, memory, bf16 ? wide : gemm_kernels_f32());
}

}  // namespace flux
