// add: the sum of inputs of the same shape.
#include <algorithm>
#include <vector>

#include "flux/nn/operator.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  for (const Node* input : context.inputs)
    if (input->width != context.inputs[0]->width)
      return context.fail(fmt::format("inputs must have one shape, got {}", context.shapes()));
  context.node.width = context.inputs[0]->width;
  return Status::ok();
}

class AddKernel : public Kernel {
 public:
  explicit AddKernel(const KernelArgs& args)
      : inputs_(args.inputs),
        out_(args.output),
        out_gradient_(args.output_gradient),
        sum_(out_.width),
        row_(out_.width) {}

  void forward(Step& step) override {
    const uint32_t width = out_.width;
    for (uint32_t b = 0; b < step.batch; ++b) {
      const float* first = read_row(inputs_[0].value, b, row_.data());
      std::copy(first, first + width, sum_.data());
      for (size_t i = 1; i < inputs_.size(); ++i) {
        const float* x = read_row(inputs_[i].value, b, row_.data());
        for (uint32_t c = 0; c < width; ++c) sum_[c] += x[c];
      }
      write_row(out_, b, sum_.data(), false);
    }
  }
  void backward(Step& step) override {
    for (const KernelInput& input : inputs_) {
      if (!input.gradient) continue;
      for (uint32_t b = 0; b < step.batch; ++b)
        write_row(input.gradient, b, read_row(out_gradient_, b, row_.data()), input.add);
    }
  }

 private:
  std::vector<KernelInput> inputs_;
  Tensor out_, out_gradient_;
  std::vector<float> sum_, row_;
};

void reference(const ReferenceCall& call) {
  const size_t n = static_cast<size_t>(call.batch) * call.node.width;
  for (size_t i = 0; i < n; ++i) {
    call.output[i] = 0;
    for (const double* input : call.inputs) call.output[i] += input[i];
  }
}

}  // namespace

OperatorDef operator_add() {
  OperatorDef def;
  def.info.name = "add";
  def.info.doc = "Sum of 2 to 64 inputs of the same shape.";
  def.info.inputs_min = 2;
  def.info.inputs_max = 64;
  def.infer = infer;
  def.reference = reference;
  def.forgets_output = [](const Node&) { return true; };
  def.make_kernel = [](const KernelArgs& args) -> Result<std::unique_ptr<Kernel>> {
    return std::unique_ptr<Kernel>(new AddKernel(args));
  };
  return def;
}

}  // namespace flux
