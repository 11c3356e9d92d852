#include "flux/nn/per_position.h"

#include <cstring>
#include <vector>

namespace flux {
namespace {

// A tensor [B,T*d] and the same numbers as [B*T,d]: in place if there are no gaps between the rows,
// and pairs of bf16 begin at even places.
class Positions {
 public:
  Positions() = default;
  Positions(const Tensor& whole, uint32_t width, uint32_t length, uint32_t batch_max,
            NetMemory& memory)
      : whole_(whole), length_(length) {
    if (!whole) return;
    const uint32_t d = width / length, stride = whole.type == DType::kBf16 ? d + d % 2 : d;
    const size_t bytes = size_t{stride} * length * batch_max * dtype_size(whole.type);
    const bool in_place = stride == d && whole.stride == width && whole.width == width;
    parts_ = {in_place ? whole.data : memory.allocate(bytes), d, stride, whole.type};
  }
  const Tensor& parts() const { return parts_; }
  bool in_place() const { return parts_.data == whole_.data; }
  void pack(const Step& step) {
    if (in_place()) return;
    const size_t bytes = parts_.width * dtype_size(parts_.type);
    for (uint32_t b = step.first; b < step.end; ++b)
      for (uint32_t p = 0; p < length_; ++p)
        std::memcpy(parts_.row(size_t{b} * length_ + p),
                    static_cast<const char*>(whole_.row(b)) + p * bytes, bytes);
  }
  void unpack(const Step& step, bool add, float* scratch) {
    if (in_place()) return;
    for (uint32_t b = step.first; b < step.end; ++b)
      for (uint32_t p = 0; p < length_; ++p)
        write_row(slice(whole_, p * parts_.width, parts_.width), b,
                  read_row(parts_, size_t{b} * length_ + p, scratch), add);
  }

 private:
  Tensor whole_, parts_;
  uint32_t length_ = 1;
};

class PerPositionKernel : public Kernel {
 public:
  explicit PerPositionKernel(const KernelArgs& args)
      : length_(args.node.length),
        add_(args.inputs[0].add),
        in_(positions(args, args.inputs[0].value, args.inputs[0].value.width)),
        in_gradient_(positions(args, args.inputs[0].gradient, args.inputs[0].value.width)),
        out_(positions(args, args.output, args.output.width)),
        out_gradient_(positions(args, args.output_gradient, args.output.width)),
        row_(std::max(args.inputs[0].value.width, args.output.width)) {}

  Status make(const KernelArgs& args, KernelMaker make) {
    KernelArgs inner = args;
    inner.batch_max = args.batch_max * length_;
    inner.output = out_.parts();
    inner.output_gradient = out_gradient_.parts();
    inner.inputs[0].value = in_.parts();
    inner.inputs[0].gradient = in_gradient_.parts();
    inner.inputs[0].add = add_ && in_gradient_.in_place();
    inner.inner = true;
    if (args.first != nullptr)
      inner.first = static_cast<const PerPositionKernel*>(args.first)->inner_.get();
    FLUX_ASSIGN_OR_RETURN(inner_, make(inner));
    return Status::ok();
  }
  void set_parameters(const float* flat) override { inner_->set_parameters(flat); }
  uint32_t pack_parts() const override { return inner_->pack_parts(); }
  void pack(uint32_t part) override { inner_->pack(part); }
  void forward(Step& step) override {
    Step inner = inner_step(step);
    in_.pack(step);
    inner_->forward(inner);
    out_.unpack(step, false, row_.data());
  }
  void backward(Step& step) override {
    Step inner = inner_step(step);
    out_gradient_.pack(step);
    inner_->backward(inner);
    if (in_gradient_.parts()) in_gradient_.unpack(step, add_, row_.data());
  }
  uint32_t sum_parts(uint32_t batch) const override { return inner_->sum_parts(batch * length_); }
  void sum(Step& step, uint32_t part) override {
    Step inner = inner_step(step);
    inner_->sum(inner, part);
  }

 private:
  Step inner_step(const Step& step) const {
    Step inner = step;
    inner.batch = step.batch * length_;
    inner.first = step.first * length_;
    inner.end = step.end * length_;
    return inner;
  }
  static Positions positions(const KernelArgs& args, const Tensor& whole, uint32_t width) {
    return {whole, width, args.node.length, args.batch_max, args.memory};
  }

  uint32_t length_;
  bool add_;
  Positions in_, in_gradient_, out_, out_gradient_;
  std::vector<float> row_;
  std::unique_ptr<Kernel> inner_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> make_per_position(const KernelArgs& args, KernelMaker make) {
  auto kernel = std::make_unique<PerPositionKernel>(args);
  FLUX_RETURN_IF_ERROR(kernel->make(args, make));
  return std::unique_ptr<Kernel>(std::move(kernel));
}

}  // namespace flux
