// FcProducts on gemm_kernels.h.
#include <algorithm>

#include "flux/base/cpu.h"
#include "flux/nn/fc_products.h"
#include "flux/nn/gemm_kernels.h"
#include "flux/nn/live_columns.h"

namespace flux {
namespace {

size_t round_up(size_t n, size_t unit) {
  return (n + unit - 1) / unit * unit;
}

// Fewer rows than this are multiplied whole: packing weights anew would cost more.
constexpr uint32_t kRowsWorth = 256;

class Avx512Products : public FcProducts {
 public:
  Avx512Products(const FcShape& shape, NetMemory& memory, const GemmKernels& kernels)
      : s_(shape),
        memory_(memory),
        pair_(shape.x.type == DType::kBf16 ? 2 : 1),
        kernels_(kernels),
        skip_(shape.skip_zeros && shape.batch_max >= kRowsWorth && LiveColumns::possible()),
        live_x_(shape.x.width, worth(kernels)),
        live_dz_(shape.y.width, worth(kernels)),
        x_(shape.x),
        dz_(shape.dz) {
    const size_t in = s_.x.width, n = s_.y.width, n16 = round_up(n, 16);
    bias_ = memory.allocate_array<float>(n16);
    sums_ = memory.allocate_array<float>(n16);
    weight_ = memory.allocate_array<float>(depth(in) * n16);
    if (s_.dx) transposed_ = memory.allocate_array<float>(depth(n) * round_up(s_.dx.width, 16));
    packed_x_ = depth(s_.batch_max) * round_up(in, 16);
    const size_t packed_dz = pair_ == 1 ? 0 : depth(s_.batch_max) * n16;
    size_t bytes = (packed_x_ + packed_dz) * sizeof(float);
    if (skip_) {
      squeezed_x_ = memory.allocate(LiveColumns::bytes(s_.x.width, s_.batch_max, s_.x.type));
      small_ = bytes;
      squeezed_dz_ = small_ + round_up((in * n + 16) * sizeof(float), 64);
      squeezed_dx_ =
          squeezed_dz_ + round_up(LiveColumns::bytes(s_.y.width, s_.batch_max, s_.dz.type), 64);
      bytes = squeezed_dx_ + LiveColumns::bytes(s_.x.width, s_.batch_max, DType::kF32);
    }
    memory.reserve_scratch(bytes);
  }

  void set_parameters(const float* weight, const float* bias) override {
    given_ = weight;
    packed_ = transposed_packed_ = false;
    if (!skip_) pack();
    std::copy(bias, bias + s_.y.width, bias_);
  }

  void forward(uint32_t batch) override {
    look(s_.x, batch, &live_x_);
    x_ = s_.x;
    if (live_x_.all()) {
      if (!packed_) pack();
    } else {
      x_ = live_x_.squeeze(s_.x, batch, squeezed_x_);
      squeeze_weight(given_, s_.x.width, s_.y.width, &live_x_, nullptr, small());
      kernels_.pack_weight(small(), x_.width, s_.y.width, weight_, 0, nullptr, 0, ~0U);
      packed_ = false;
    }
    Gemm g = into(s_.y, batch);
    read_rows(x_, &g);
    g.b = weight_;
    g.bias = bias_;
    g.relu = s_.relu;
    g.kept = beside(s_.kept);
    g.scale = beside(s_.scale);
    g.plus = beside(s_.plus);
    kernels_.gemm(g);
  }

  void backward_weights(uint32_t batch, float* dw, float* db) override {
    look(s_.dz, batch, &live_dz_);
    dz_ = live_dz_.all() ? s_.dz : live_dz_.squeeze(s_.dz, batch, scratch(squeezed_dz_));
    const bool whole = live_x_.all() && live_dz_.all();
    const uint32_t in = x_.width, n = dz_.width;
    auto* a = static_cast<float*>(memory_.scratch());
    float* b = a + packed_x_;
    kernels_.pack_a(x_.data, x_.stride, 0, batch, batch, in, a);
    Gemm g = into({whole ? dw : small(), n, n, DType::kF32}, in);
    g.k = static_cast<uint32_t>(units(batch));
    g.a = a;
    g.a_packed = true;
    if (pair_ == 1) {  // rows of dz are what the product reads
      g.b = dz_.data;
      g.b_stride = dz_.stride;
      g.b_sums = sums_;
    } else {
      kernels_.pack_b(dz_.data, dz_.stride, 0, batch, batch, n, b, sums_);
      g.b = b;
    }
    kernels_.gemm(g);
    if (whole) {
      std::copy(sums_, sums_ + n, db);
      return;
    }
    spread_weight(small(), live_x_, live_dz_, dw);
    live_dz_.spread({sums_, n, n, DType::kF32}, 1, {db, s_.y.width, s_.y.width, DType::kF32});
  }

  void backward_data(uint32_t batch) override {
    // Where x is 0 so is dx, if it is masked: then those columns are left out of it, too.
    const bool narrow = !live_x_.all() && s_.dx_mask && !s_.dx_add && s_.dx.width == s_.x.width;
    Tensor dx = s_.dx;
    if (narrow) dx = {scratch(squeezed_dx_), x_.width, live_x_.stride(), s_.dx.type};
    if (narrow || !live_dz_.all()) {
      squeeze_weight(given_, s_.dx.width, s_.y.width, narrow ? &live_x_ : nullptr, &live_dz_,
                     small());
      kernels_.pack_weight(small(), dx.width, dz_.width, nullptr, dx.width, transposed_, 0, ~0U);
      transposed_packed_ = false;
    } else if (!transposed_packed_) {
      kernels_.pack_weight(given_, s_.dx.width, s_.y.width, nullptr, s_.dx.width, transposed_, 0,
                           ~0U);
      transposed_packed_ = true;
    }
    Gemm g = into(dx, batch);
    read_rows(dz_, &g);
    g.b = transposed_;
    g.add = s_.dx_add;
    g.plus = beside(s_.dx_plus);
    if (s_.dx_mask) g.mask = beside(narrow ? x_ : s_.x);
    kernels_.gemm(g);
    if (narrow) live_x_.spread(dx, batch, s_.dx);
  }

 private:
  // Products in tile registers are so fast that squeezing pays later.
  static uint32_t worth(const GemmKernels& kernels) { return kernels.depth > 1 ? 4 : 8; }
  size_t units(size_t elements) const { return round_up(elements, pair_) / pair_; }
  size_t depth(size_t elements) const { return round_up(units(elements), kernels_.depth); }
  void* scratch(size_t offset) const { return static_cast<char*>(memory_.scratch()) + offset; }
  float* small() const { return static_cast<float*>(scratch(small_)); }
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
  void look(const Tensor& matrix, uint32_t batch, LiveColumns* live) const {
    if (batch < kRowsWorth)
      live->set_all();
    else if (skip_)
      live->look(matrix, batch);
  }
  // Both ways at once, unless the way back was of few columns the last time.
  void pack() {
    const bool both = s_.dx && live_dz_.all();
    kernels_.pack_weight(given_, s_.x.width, s_.y.width, weight_, both ? s_.dx.width : 0,
                         transposed_, 0, ~0U);
    packed_ = true;
    transposed_packed_ = both;
  }

  FcShape s_;
  NetMemory& memory_;
  size_t pair_;
  const GemmKernels& kernels_;
  bool skip_;  // leave out columns that are zero
  LiveColumns live_x_, live_dz_;
  Tensor x_, dz_;  // without dead columns
  const float* given_ = nullptr;
  bool packed_ = false, transposed_packed_ = false;  // the whole weight
  float *bias_, *sums_, *weight_, *transposed_ = nullptr;
  size_t packed_x_;  // units in scratch before packed dz
  void* squeezed_x_ = nullptr;
  // Where these begin in scratch: a weight, or its gradient, of few columns; dz and dx of few.
  size_t small_ = 0, squeezed_dz_ = 0, squeezed_dx_ = 0;
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
