#include "flux/nn/fc_kernel.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "flux/base/buffer.h"
#include "flux/base/cpu.h"
#include "flux/nn/dot_kernels.h"
#include "flux/nn/fc_products.h"
#include "flux/nn/row_kernels.h"
#include "flux/nn/vector_math.h"

namespace flux {
namespace {

// Those whose slope follows from their output alone: what comes before it is not kept.
enum class Activation : unsigned char { kNone, kRelu, kSigmoid, kTanh, kLeaky, kElu, kSoftplus };

constexpr float kLeakySlope = 0.01F;

Activation activation_of(const Node& node) {
  const std::string& name = node.text_attr("activation");
  if (name == "relu") return Activation::kRelu;
  if (name == "sigmoid") return Activation::kSigmoid;
  if (name == "leaky_relu") return Activation::kLeaky;
  if (name == "elu") return Activation::kElu;
  if (name == "softplus") return Activation::kSoftplus;
  return name == "tanh" ? Activation::kTanh : Activation::kNone;
}

void activate(Activation f, float* y, uint32_t n) {
  if (f == Activation::kRelu)
    for (uint32_t c = 0; c < n; ++c) y[c] = y[c] < 0 ? 0.0F : y[c];  // keeps NaN
  if (f == Activation::kSigmoid)
    for (uint32_t c = 0; c < n; ++c) y[c] = sigmoid(y[c]);
  if (f == Activation::kTanh)
    for (uint32_t c = 0; c < n; ++c) y[c] = tanh_of(y[c]);
  if (f == Activation::kLeaky)
    for (uint32_t c = 0; c < n; ++c) y[c] = y[c] > 0 ? y[c] : kLeakySlope * y[c];
  if (f == Activation::kElu)
    for (uint32_t c = 0; c < n; ++c) y[c] = y[c] > 0 ? y[c] : std::expm1(y[c]);
  if (f == Activation::kSoftplus)
    for (uint32_t c = 0; c < n; ++c) y[c] = softplus_of(y[c]);
}

// dz = dy * f'(z), by the output.
void deactivate(Activation f, const float* y, const float* dy, float* dz, uint32_t n) {
  for (uint32_t c = 0; c < n; ++c) {
    float slope = 1.0F;
    if (f == Activation::kSigmoid) slope = y[c] * (1.0F - y[c]);
    if (f == Activation::kTanh) slope = 1.0F - y[c] * y[c];
    if (f == Activation::kLeaky) slope = y[c] > 0 ? 1.0F : kLeakySlope;
    if (f == Activation::kElu) slope = y[c] > 0 ? 1.0F : y[c] + 1.0F;
    if (f == Activation::kSoftplus) slope = -std::expm1(-y[c]);
    dz[c] = f == Activation::kRelu && !(y[c] > 0) ? 0.0F : dy[c] * slope;  // whatever dy is
  }
}

// What both kernels of this file share: the layer's parameters and how it is activated.
class FcBase : public Kernel {
 protected:
  explicit FcBase(const KernelArgs& args)
      : in_(args.inputs[0]),
        out_(args.output),
        dz_(args.output_gradient),
        activation_(activation_of(args.node)),
        masked_(args.output_gradient_masked),
        wide_(out_.type == DType::kBf16 ? cpu_has_avx512_bf16() : cpu_has_avx512()),
        weight_(args.graph.parameters()[args.node.parameters[0]].offset),
        has_bias_(args.node.parameters.size() > 1),
        zero_(out_.width),
        row_(out_.width),
        other_(out_.width) {
    if (has_bias_) bias_ = args.graph.parameters()[args.node.parameters[1]].offset;
    zero_.fill(0);
  }
  const float* bias_in(const float* flat) const { return has_bias_ ? flat + bias_ : zero_.data(); }
  // Where the gradient of the bias goes; without a bias, where nobody looks.
  float* bias_out(float* flat) { return has_bias_ ? flat + bias_ : row_.data(); }
  void activate_rows(uint32_t first, uint32_t end) {
    for (uint32_t b = first; b < end; ++b) {
      float* y = row_.data();
      const float* from = read_row(out_, b, y);
      if (from != y) std::copy(from, from + out_.width, y);
      activate(activation_, y, out_.width);
      write_row(out_, b, y, false);
    }
  }
  void make_dz(const Tensor& gradient, uint32_t first, uint32_t end) {
    if (dz_.data == gradient.data && (masked_ || activation_ == Activation::kNone)) return;
    const Activation f = masked_ ? Activation::kNone : activation_;
    if (f == Activation::kRelu && dz_.data == gradient.data && dz_.type == out_.type && wide_)
      return mask_rows(first, end);
    for (uint32_t b = first; b < end; ++b) {
      const float* dy = read_row(gradient, b, row_.data());
      const float* y = read_row(out_, b, other_.data());
      deactivate(f, y, dy, row_.data(), out_.width);
      write_row(dz_, b, row_.data(), false);
    }
  }

  void mask_rows(uint32_t first, uint32_t end) {
    const RowsAt y{out_.row(first), out_.stride}, g{dz_.row(first), dz_.stride};
    if (out_.type == DType::kBf16) return mask_relu_bf16(end - first, out_.width, y, g);
    mask_relu_f32(end - first, out_.width, y, g);
  }

  KernelInput in_;
  Tensor out_, dz_;
  Activation activation_;
  bool masked_;
  bool wide_;  // the CPU has kernels for the type of the output
  size_t weight_, bias_ = 0;
  bool has_bias_;
  Buffer<float> zero_, row_, other_;
};

class FcKernel : public FcBase {
 public:
  explicit FcKernel(const KernelArgs& args) : FcBase(args), gradient_(args.output_gradient) {
    if (dz_ && dz_.type == in_.value.type) return;
    const uint32_t stride = (out_.width + 31) / 32 * 32;
    const size_t bytes = static_cast<size_t>(stride) * args.batch_max * dtype_size(in_.value.type);
    dz_ = {args.memory.allocate(bytes), out_.width, stride, in_.value.type};
  }
  // The members share the products.
  Status make(const KernelArgs& args) {
    if (args.first != nullptr) {
      const auto& first = static_cast<const FcKernel&>(*args.first);
      products_ = first.products_;
      leads_ = false;
      args.memory.replay(first.behind_);
      return Status::ok();
    }
    FcShape shape;
    shape.x = in_.value;
    shape.y = out_;
    shape.dz = dz_;
    shape.dx = in_.gradient;
    shape.dx_add = in_.add;
    shape.dx_mask = in_.mask_relu;
    shape.relu = activation_ == Activation::kRelu;
    // Where zeros come from: relus, above and here.
    const Node& above = args.graph.nodes()[args.node.inputs[0]];
    shape.skip_x = !args.inner && (above.relu_output || above.op == "relu");
    shape.skip_dz = !args.inner && shape.relu;
    shape.batch_max = args.batch_max;
    shape.members = args.members;
    shape.alone = args.members == 1 && !args.inner;
    FLUX_ASSIGN_OR_RETURN(products_, make_products(shape, args.memory));
    behind_ = args.memory.mark();
    return Status::ok();
  }
  void set_parameters(const float* flat) override {
    if (leads_) products_->set_parameters(flat + weight_, bias_in(flat));
  }
  uint32_t pack_parts() const override { return products_->pack_parts(); }
  void pack(uint32_t part) override { products_->pack(part); }

  bool looks(bool backward) const override {
    return backward ? products_->looks_backward() : products_->looks_forward();
  }
  void look_forward(Step& step) override { products_->look_x(step.first, step.end); }
  void look_backward(Step& step) override {
    make_dz(gradient_, step.first, step.end);
    products_->look_dz(step.first, step.end);
  }
  uint32_t begin_narrow(bool backward, uint32_t batch) override {
    return backward ? products_->begin_narrow_backward(batch)
                    : products_->begin_narrow_forward(batch);
  }
  void narrow(bool backward, uint32_t part) override {
    backward ? products_->narrow_backward(part) : products_->narrow_forward(part);
  }

  void forward(Step& step) override {
    products_->forward(step.first, step.end);
    // The products apply relu themselves.
    if (activation_ != Activation::kNone && activation_ != Activation::kRelu)
      activate_rows(step.first, step.end);
  }
  void backward(Step& step) override {
    if (!looks(true)) make_dz(gradient_, step.first, step.end);
    products_->keep(step.first, step.end, step.batch);
    if (in_.gradient) products_->backward_data(step.first, step.end);
  }
  uint32_t sum_parts(uint32_t) const override { return products_->weight_parts(); }
  void sum(Step& step, uint32_t part) override {
    float* flat = step.gradients->parameters;
    products_->backward_weights(step.batch, part, flat + weight_, bias_out(flat));
  }

 private:
  Tensor gradient_;
  std::shared_ptr<FcProducts> products_;
  bool leads_ = true;  // of the node's first member
  size_t behind_ = 0;  // the place in NetMemory behind what the products took
};

// One unit: a dot product per example forward, two scaled additions backward.
class FcDotKernel : public FcBase {
 public:
  explicit FcDotKernel(const KernelArgs& args)
      : FcBase(args),
        rows_(dot_kernels(in_.value.type)),
        y_(args.memory.allocate_array<float>(args.batch_max)),
        dw_(&args.memory, args.batch_max, in_.value.width),
        db_(&args.memory, args.batch_max, 1) {}
  void set_parameters(const float* flat) override {
    w_ = flat + weight_;
    b_ = *bias_in(flat);
  }
  void forward(Step& step) override {
    float* y = y_ + step.first;
    rows_.forward(rows_from(in_.value, step.first), step.rows(), w_, b_, y);
    activate(activation_, y, step.rows());
    for (uint32_t b = step.first; b < step.end; ++b) write_row(out_, b, y_ + b, false);
  }
  void backward(Step& step) override {
    make_dz(dz_, step.first, step.end);
    for_sum_rows(step.first, step.end, [&](uint32_t begin, uint32_t end) {
      float* db = db_.clear_part(begin);
      for (uint32_t b = begin; b < end; ++b) {
        y_[b] = *read_row(dz_, b, y_ + b);
        *db += y_[b];
      }
      KernelInput x = in_;
      x.value = rows_from(in_.value, begin);
      x.gradient = rows_from(in_.gradient, begin);
      rows_.backward(x, end - begin, w_, y_ + begin, dw_.clear_part(begin));
    });
  }
  uint32_t sum_parts(uint32_t) const override { return dw_.pieces() + db_.pieces(); }
  void sum(Step& step, uint32_t part) override {
    float* flat = step.gradients->parameters;
    if (part < dw_.pieces()) return dw_.add_up(step.batch, part, flat + weight_);
    db_.add_up(step.batch, part - dw_.pieces(), bias_out(flat));
  }

 private:
  DotKernels rows_;
  float* y_;  // of all rows: outputs, then gradients
  RowSums dw_, db_;
  const float* w_ = nullptr;
  float b_ = 0;
};

}  // namespace

Result<std::unique_ptr<Kernel>> make_fc_kernel(const KernelArgs& args) {
  if (args.output.width == 1) return std::unique_ptr<Kernel>(new FcDotKernel(args));
  auto kernel = std::make_unique<FcKernel>(args);
  FLUX_RETURN_IF_ERROR(kernel->make(args));
  return std::unique_ptr<Kernel>(std::move(kernel));
}

}  // namespace flux
