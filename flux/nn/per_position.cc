#include "flux/nn/per_position.h"

#include <cstring>
#include <vector>

namespace flux {
namespace {

// A tensor [B,T*d] and the same numbers as [B*T,d]: in place if there are no gaps between the rows.
class Positions {
 public:
  Positions() = default;
  Positions(const Tensor& whole, uint32_t width, uint32_t length, uint32_t batch_max,
            NetMemory& memory)
      : whole_(whole) {
    if (!whole) return;
    const size_t bytes = static_cast<size_t>(width) * batch_max * dtype_size(whole.type);
    const bool in_place = whole.stride == width && whole.width == width;
    packed_ = {in_place ? whole.data : memory.allocate(bytes), width, width, whole.type};
    parts_ = {packed_.data, width / length, width / length, whole.type};
  }
  const Tensor& parts() const { return parts_; }
  bool in_place() const { return packed_.data == whole_.data; }
  void pack(uint32_t batch) {
    if (in_place()) return;
    for (uint32_t b = 0; b < batch; ++b)
      std::memcpy(packed_.row(b), whole_.row(b), packed_.width * dtype_size(packed_.type));
  }
  void unpack(uint32_t batch, bool add, float* scratch) {
    if (in_place()) return;
    for (uint32_t b = 0; b < batch; ++b) write_row(whole_, b, read_row(packed_, b, scratch), add);
  }

 private:
  Tensor whole_, packed_, parts_;
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
    FLUX_ASSIGN_OR_RETURN(inner_, make(inner));
    return Status::ok();
  }
  void set_parameters(const float* flat) override { inner_->set_parameters(flat); }
  void forward(Step& step) override {
    Step inner = step;
    inner.batch = step.batch * length_;
    in_.pack(step.batch);
    inner_->forward(inner);
    out_.unpack(step.batch, false, row_.data());
  }
  void backward(Step& step) override {
    Step inner = step;
    inner.batch = step.batch * length_;
    out_gradient_.pack(step.batch);
    inner_->backward(inner);
    if (in_gradient_.parts()) in_gradient_.unpack(step.batch, add_, row_.data());
  }

 private:
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
