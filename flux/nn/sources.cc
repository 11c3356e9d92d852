// The nodes that exist before a person adds any: "dense" and "label".
#include <cstring>

#include "flux/nn/operator.h"

namespace flux {
namespace {

class DenseKernel : public Kernel {
 public:
  explicit DenseKernel(const KernelArgs& args) : out_(args.output) {}
  void forward(Step& step) override {
    for (uint32_t b = 0; b < step.batch; ++b)
      write_row(out_, b, step.input->dense + static_cast<size_t>(b) * out_.width, false);
  }
  void backward(Step&) override {}

 private:
  Tensor out_;
};

class LabelKernel : public Kernel {
 public:
  explicit LabelKernel(const KernelArgs& args) : out_(args.output) {}
  void forward(Step& step) override {
    for (uint32_t b = 0; b < step.batch; ++b)
      *out_.f32(b) = step.input->labels == nullptr ? 0.0F : step.input->labels[b];
  }
  void backward(Step&) override {}

 private:
  Tensor out_;
};

template <typename K>
Result<std::unique_ptr<Kernel>> make(const KernelArgs& args) {
  return std::unique_ptr<Kernel>(new K(args));
}

OperatorDef dense_source() {
  OperatorDef def;
  def.info.name = "dense";
  def.info.doc = "The dense features of the example.";
  def.forgets_output = [](const Node&) { return true; };
  def.make_kernel = make<DenseKernel>;
  return def;
}

OperatorDef label_source() {
  OperatorDef def;
  def.info.name = "label";
  def.info.doc = "The label of the example, 0 or 1.";
  def.make_kernel = make<LabelKernel>;
  return def;
}

}  // namespace

const OperatorDef* find_source(const std::string& name) {
  static const OperatorDef dense = dense_source();
  static const OperatorDef label = label_source();
  if (name == "dense") return &dense;
  return name == "label" ? &label : nullptr;
}

}  // namespace flux
