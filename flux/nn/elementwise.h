// Elementwise<F>: the whole of an operator y = f(x) with one input, element by element.
//
// F is made from the node (for its attributes; derive from ElementwiseFunction if there are none)
// and has
//   float forward(float x) const;
//   float derivative(float x, float y) const;   // dy/dx
//   double plain(double x) const;               // the reference
//   static constexpr bool kNeedsOutput;         // whether derivative() looks at y
// The loops vectorise when F's functions have no branches but choices.
#pragma once

#include <memory>
#include <vector>

#include "flux/nn/attribute_specs.h"
#include "flux/nn/operator.h"

namespace flux {

struct ElementwiseFunction {
  explicit ElementwiseFunction(const Node&) {}
  static constexpr bool kNeedsOutput = false;
};

template <typename F>
class ElementwiseKernel : public Kernel {
 public:
  explicit ElementwiseKernel(const KernelArgs& args)
      : f_(args.node),
        in_(args.inputs[0]),
        out_(args.output),
        out_gradient_(args.output_gradient),
        x_(args.output.width),
        y_(args.output.width),
        dx_(args.output.width) {}

  void forward(Step& step) override {
    for (uint32_t b = 0; b < step.batch; ++b) {
      const float* x = read_row(in_.value, b, x_.data());
      for (uint32_t c = 0; c < out_.width; ++c) y_[c] = f_.forward(x[c]);
      write_row(out_, b, y_.data(), false);
    }
  }
  void backward(Step& step) override {
    if (!in_.gradient) return;
    for (uint32_t b = 0; b < step.batch; ++b) {
      const float* x = read_row(in_.value, b, x_.data());
      const float* y = F::kNeedsOutput ? read_row(out_, b, y_.data()) : x;
      const float* dy = read_row(out_gradient_, b, dx_.data());
      for (uint32_t c = 0; c < out_.width; ++c) dx_[c] = f_.derivative(x[c], y[c]) * dy[c];
      write_row(in_.gradient, b, dx_.data(), in_.add);
    }
  }

 private:
  F f_;
  KernelInput in_;
  Tensor out_, out_gradient_;
  std::vector<float> x_, y_, dx_;
};

template <typename F>
OperatorDef elementwise_operator(const char* name, const char* doc,
                                 std::vector<AttrSpec> attrs = {}) {
  OperatorDef def;
  def.info.name = name;
  def.info.doc = doc;
  def.info.inputs_min = def.info.inputs_max = 1;
  def.info.attrs = std::move(attrs);
  def.infer = [](InferContext& context) {
    context.node.width = context.inputs[0]->width;
    context.node.length = context.inputs[0]->length;
    return Status::ok();
  };
  def.reference = [](const ReferenceCall& call) {
    const F f(call.node);
    const size_t n = static_cast<size_t>(call.batch) * call.node.width;
    for (size_t i = 0; i < n; ++i) call.output[i] = f.plain(call.inputs[0][i]);
  };
  if (!F::kNeedsOutput) def.forgets_output = [](const Node&) { return true; };
  def.make_kernel = [](const KernelArgs& args) -> Result<std::unique_ptr<Kernel>> {
    return std::unique_ptr<Kernel>(new ElementwiseKernel<F>(args));
  };
  return def;
}

}  // namespace flux
