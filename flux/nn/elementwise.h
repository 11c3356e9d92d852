// Elementwise<F>: the whole of an operator y = f(x) with one input, element by element.
//
// F is made from the node (for its attributes; derive from ElementwiseFunction if there are none)
// and has
//   float forward(float x) const;
//   float derivative(float x, float y) const;   // dy/dx; or, where that times dy is not it:
//   float gradient(float x, float y, float dy) const;
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
        dx_(args.output.width),
        dy_(args.output.width) {}

  void forward(Step& step) override {
    const F f = f_;  // a copy and plain pointers: nothing that is written may be a part of f
    const bool direct = out_.type == DType::kF32;
    for (uint32_t b = step.first; b < step.end; ++b) {
      const float* x = read_row(in_.value, b, x_.data());
      float* __restrict y = direct ? out_.f32(b) : y_.data();
      for (uint32_t c = 0; c < out_.width; ++c) y[c] = f.forward(x[c]);
      if (!direct) write_row(out_, b, y, false);
    }
  }
  void backward(Step& step) override {
    if (!in_.gradient) return;
    const F f = f_;
    const uint32_t width = out_.width;
    for (uint32_t b = step.first; b < step.end; ++b) {
      const float* x = read_row(in_.value, b, x_.data());
      const float* y = F::kNeedsOutput ? read_row(out_, b, y_.data()) : x;
      const float* dy = read_row(out_gradient_, b, dy_.data());
      float* __restrict dx = dx_.data();
      for (uint32_t c = 0; c < width; ++c) dx[c] = gradient(f, x[c], y[c], dy[c]);
      write_row(in_.gradient, b, dx, in_.add);
    }
  }

 private:
  static float gradient(const F& f, float x, float y, float dy) {
    if constexpr (requires { f.gradient(x, y, dy); })
      return f.gradient(x, y, dy);
    else
      return f.derivative(x, y) * dy;
  }
  F f_;
  KernelInput in_;
  Tensor out_, out_gradient_;
  std::vector<float> x_, y_, dx_, dy_;
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
