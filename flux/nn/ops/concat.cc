// concat: inputs side by side along the features. The planner lets most inputs write straight into
// the output (KernelInput::aliased); only the others are copied.
#include <vector>

#include "flux/nn/operator.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  uint64_t width = 0;
  for (const Node* input : context.inputs) width += input->width;
  if (width > (1U << 24))
    return context.fail(fmt::format("the result is too wide: {}", context.shapes()));
  context.node.width = static_cast<uint32_t>(width);
  return Status::ok();
}

class ConcatKernel : public Kernel {
 public:
  explicit ConcatKernel(const KernelArgs& args) : inputs_(args.inputs), row_(args.output.width) {
    uint32_t begin = 0;
    for (const KernelInput& input : inputs_) {
      const uint32_t width = input.value.width;
      out_.push_back(slice(args.output, begin, width));
      out_gradient_.push_back(args.output_gradient ? slice(args.output_gradient, begin, width)
                                                   : Tensor{});
      begin += width;
    }
  }

  void forward(Step& step) override {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].aliased) continue;
      for (uint32_t b = step.first; b < step.end; ++b)
        write_row(out_[i], b, read_row(inputs_[i].value, b, row_.data()), false);
    }
  }
  void backward(Step& step) override {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i].gradient) continue;
      for (uint32_t b = step.first; b < step.end; ++b)
        write_row(inputs_[i].gradient, b, read_row(out_gradient_[i], b, row_.data()),
                  inputs_[i].add);
    }
  }

 private:
  std::vector<KernelInput> inputs_;
  std::vector<Tensor> out_, out_gradient_;
  std::vector<float> row_;
};

void reference(const ReferenceCall& call) {
  double* to = call.output;
  for (uint32_t b = 0; b < call.batch; ++b) {
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const uint32_t width = call.input_width(i);
      for (uint32_t c = 0; c < width; ++c) *to++ = call.inputs[i][b * width + c];
    }
  }
}

}  // namespace

OperatorDef operator_concat() {
  OperatorDef def;
  def.info.name = "concat";
  def.info.doc = "Inputs side by side along the features.";
  def.info.inputs_min = 1;
  def.info.inputs_max = 64;
  def.infer = infer;
  def.reference = reference;
  def.make_kernel = [](const KernelArgs& args) -> Result<std::unique_ptr<Kernel>> {
    return std::unique_ptr<Kernel>(new ConcatKernel(args));
  };
  return def;
}

}  // namespace flux
