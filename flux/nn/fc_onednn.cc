// FcProducts on oneDNN: three matmul primitives made for batch_max rows. Smaller batches run with
// the rows beyond them zeroed, so that nothing is compiled anew.
#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <vector>

#include <dnnl.hpp>

#include "flux/base/buffer.h"
#include "flux/nn/fc_products.h"

namespace flux {
namespace {

using Desc = dnnl::memory::desc;

dnnl::memory::data_type type_of(DType type) {
  return type == DType::kF32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16;
}

Desc matrix(const Tensor& t, int64_t rows) {
  return Desc({rows, t.width}, type_of(t.type), {t.stride, 1});
}
Desc transposed(const Tensor& t, int64_t rows) {
  return Desc({t.width, rows}, type_of(t.type), {1, t.stride});
}

void zero_rows(const Tensor& t, uint32_t begin, uint32_t end) {
  for (uint32_t r = begin; r < end; ++r) std::memset(t.row(r), 0, t.width * dtype_size(t.type));
}

// oneDNN takes the shapes of AMX's tiles from CPUID; where a virtual machine has AMX but hides that
// description, it sets up none and the process dies of an illegal instruction. So it may not use
// them; what is fast of AMX is in kernels_amx.cc.
dnnl::engine cpu_engine() {
  static const auto limited = dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_bf16);
  (void)limited;  // only fails when something was computed before, and then it is set already
  return {dnnl::engine::kind::cpu, 0};
}

// One matmul with its arguments bound.
class Product {
 public:
  void make(const dnnl::engine& engine, const Desc& a, const Desc& b, const Desc* bias,
            const Desc& c, const dnnl::post_ops& ops) {
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    attr.set_post_ops(ops);
    const auto desc =
        bias == nullptr ? dnnl::matmul::desc(a, b, c) : dnnl::matmul::desc(a, b, *bias, c);
    const dnnl::matmul::primitive_desc pd(desc, attr, engine);
    primitive_ = dnnl::matmul(pd);
    scratch_.resize_discard(pd.scratchpad_desc().get_size() + 64);
    args_[DNNL_ARG_SRC] = dnnl::memory(a, engine, nullptr);
    args_[DNNL_ARG_WEIGHTS] = dnnl::memory(b, engine, nullptr);
    if (bias != nullptr) args_[DNNL_ARG_BIAS] = dnnl::memory(*bias, engine, nullptr);
    args_[DNNL_ARG_DST] = dnnl::memory(c, engine, nullptr);
    args_[DNNL_ARG_SCRATCHPAD] = dnnl::memory(pd.scratchpad_desc(), engine, scratch_.data());
  }
  void bind(int arg, const void* data) { args_[arg].set_data_handle(const_cast<void*>(data)); }
  void run(dnnl::stream& stream) { primitive_.execute(stream, args_); }

 private:
  dnnl::matmul primitive_;
  Buffer<char> scratch_;
  std::unordered_map<int, dnnl::memory> args_;
};

class OnednnProducts : public FcProducts {
 public:
  OnednnProducts(const FcShape& shape, NetMemory& memory)
      : s_(shape),
        memory_(memory),
        engine_(cpu_engine()),
        stream_(engine_),
        weight_(memory.allocate(static_cast<size_t>(shape.x.width) * shape.y.width *
                                dtype_size(shape.x.type))),
        bias_(shape.y.width),
        sums_(shape.y.width),
        row_(std::max(shape.x.width, shape.y.width)) {
    const int64_t batch = s_.batch_max, in = s_.x.width, units = s_.y.width;
    if (s_.dx)
      memory.reserve_scratch(static_cast<size_t>(s_.dx.stride) * s_.batch_max *
                             dtype_size(s_.dx.type));
    const auto type = type_of(s_.x.type);
    const Desc bias({1, units}, dnnl::memory::data_type::f32, {units, 1});
    dnnl::post_ops relu, add;
    if (s_.relu) relu.append_eltwise(1.0F, dnnl::algorithm::eltwise_relu, 0, 0);
    forward_.make(engine_, matrix(s_.x, batch), Desc({in, units}, type, {units, 1}), &bias,
                  matrix(s_.y, batch), relu);
    forward_.bind(DNNL_ARG_SRC, s_.x.data);
    forward_.bind(DNNL_ARG_WEIGHTS, weight_);
    forward_.bind(DNNL_ARG_BIAS, bias_.data());
    forward_.bind(DNNL_ARG_DST, s_.y.data);
    if (s_.dx) {
      if (s_.dx_add) add.append_sum(1.0F);
      // The mask is read after the product, so a dx that lies over x needs a detour.
      detour_ = s_.dx_mask && s_.dx.data == s_.x.data;
      const Tensor dx = detour_ ? detour(memory.scratch()) : s_.dx;
      data_.make(engine_, matrix(s_.dz, batch), Desc({units, s_.dx.width}, type, {1, units}),
                 nullptr, matrix(dx, batch), add);
      data_.bind(DNNL_ARG_SRC, s_.dz.data);
      data_.bind(DNNL_ARG_WEIGHTS, weight_);
    }
    weights_.make(engine_, transposed(s_.x, batch), matrix(s_.dz, batch), nullptr,
                  Desc({in, units}, dnnl::memory::data_type::f32, {units, 1}), {});
    weights_.bind(DNNL_ARG_SRC, s_.x.data);
    weights_.bind(DNNL_ARG_WEIGHTS, s_.dz.data);
  }

  void set_parameters(const float* weight, const float* bias) override {
    const size_t n = static_cast<size_t>(s_.x.width) * s_.y.width;
    const Tensor flat{weight_, static_cast<uint32_t>(n), 0, s_.x.type};
    write_row(flat, 0, weight, false);
    std::copy(bias, bias + s_.y.width, bias_.data());
  }
  void forward(uint32_t batch) override {
    zero_rows(s_.x, batch, s_.batch_max);
    forward_.run(stream_);
  }
  void backward_data(uint32_t batch) override {
    zero_rows(s_.dz, batch, s_.batch_max);
    const Tensor dx = detour_ ? detour(memory_.scratch()) : s_.dx;
    data_.bind(DNNL_ARG_DST, dx.data);
    data_.run(stream_);
    if (!s_.dx_mask) return;
    for (uint32_t b = 0; b < batch; ++b) mask_row(dx, b);
  }
  void backward_weights(uint32_t batch, float* dw, float* db) override {
    zero_rows(s_.dz, batch, s_.batch_max);
    weights_.bind(DNNL_ARG_DST, dw);
    weights_.run(stream_);
    std::fill(sums_.begin(), sums_.end(), 0.0F);
    for (uint32_t b = 0; b < batch; ++b) {
      const float* g = read_row(s_.dz, b, row_.data());
      for (uint32_t c = 0; c < s_.y.width; ++c) sums_[c] += g[c];
    }
    std::copy(sums_.begin(), sums_.end(), db);
  }

 private:
  Tensor detour(void* scratch) const { return {scratch, s_.dx.width, s_.dx.stride, s_.dx.type}; }
  // x > 0, on the bits: positive and not zero (relu outputs are never NaN unless all is lost).
  void mask_row(const Tensor& from, uint32_t b) {
    if (s_.dx.type == DType::kF32 && s_.x.type == DType::kF32) {
      const float* x = s_.x.f32(b);
      const float* in = from.f32(b);
      float* dx = s_.dx.f32(b);
      for (uint32_t c = 0; c < s_.dx.width; ++c) dx[c] = x[c] > 0 ? in[c] : 0.0F;
      return;
    }
    const auto* x = static_cast<const int16_t*>(s_.x.row(b));
    const uint16_t* in = from.bf16(b);
    uint16_t* dx = s_.dx.bf16(b);
    for (uint32_t c = 0; c < s_.dx.width; ++c) dx[c] = x[c] > 0 ? in[c] : static_cast<uint16_t>(0);
  }

  FcShape s_;
  NetMemory& memory_;
  bool detour_ = false;
  dnnl::engine engine_;
  dnnl::stream stream_;
  Product forward_, data_, weights_;
  void* weight_;
  Buffer<float> bias_, sums_, row_;
};

}  // namespace

Result<std::unique_ptr<FcProducts>> make_onednn_products(const FcShape& shape, NetMemory& memory) {
  try {
    return std::unique_ptr<FcProducts>(new OnednnProducts(shape, memory));
  } catch (const dnnl::error& e) {
    return invalid("oneDNN cannot make the products of a layer [{}, {}]: {}", shape.x.width,
                   shape.y.width, e.what());
  }
}

}  // namespace flux
