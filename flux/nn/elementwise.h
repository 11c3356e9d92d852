// ElementwiseKernel<F>: the whole kernel of an operator y = F::forward(x) with one input, whose
// derivative F::derivative(y) is written in terms of its output; F::plain(x) is the reference in
// double. Used by ops/relu.cc and friends.
#pragma once

#include <memory>
#include <vector>

#include "flux/nn/operator.h"

namespace flux {

template <typename F>
class ElementwiseKernel : public Kernel {
 public:
  explicit ElementwiseKernel(const KernelArgs& args)
      : in_(args.inputs[0]),
        out_(args.output),
        out_gradient_(args.output_gradient),
        x_(args.output.width),
        y_(args.output.width) {}

  void forward(Step& step) override {
    for (uint32_t b = 0; b < step.batch; ++b) {
      const float* x = read_row(in_.value, b, x_.data());
      for (uint32_t c = 0; c < out_.width; ++c) y_[c] = F::forward(x[c]);
      write_row(out_, b, y_.data(), false);
    }
  }
  void backward(Step& step) override {
    if (!in_.gradient) return;
    for (uint32_t b = 0; b < step.batch; ++b) {
      const float* y = read_row(out_, b, x_.data());
      const float* dy = read_row(out_gradient_, b, y_.data());
      for (uint32_t c = 0; c < out_.width; ++c) y_[c] = F::derivative(y[c]) * dy[c];
      write_row(in_.gradient, b, y_.data(), in_.add);
    }
  }

 private:
  KernelInput in_;
  Tensor out_, out_gradient_;
  std::vector<float> x_, y_;
};

template <typename F>
OperatorDef elementwise_operator(const char* name, const char* doc) {
  OperatorDef def;
  def.info.name = name;
  def.info.doc = doc;
  def.info.inputs_min = def.info.inputs_max = 1;
  def.infer = [](InferContext& context) {
    context.node.width = context.inputs[0]->width;
    return Status::ok();
  };
  def.reference = [](const ReferenceCall& call) {
    const size_t n = static_cast<size_t>(call.batch) * call.node.width;
    for (size_t i = 0; i < n; ++i) call.output[i] = F::plain(call.inputs[0][i]);
  };
  def.make_kernel = [](const KernelArgs& args) -> Result<std::unique_ptr<Kernel>> {
    return std::unique_ptr<Kernel>(new ElementwiseKernel<F>(args));
  };
  return def;
}

}  // namespace flux
