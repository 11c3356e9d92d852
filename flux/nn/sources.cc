// The nodes that exist before a person adds any: dense features, labels, the example's weight.
#include <cstring>

#include "flux/nn/operator.h"

namespace flux {
namespace {

class DenseKernel : public Kernel {
 public:
  explicit DenseKernel(const KernelArgs& args) : out_(args.output) {}
  void forward(Step& step) override {
    for (uint32_t b = step.first; b < step.end; ++b)
      write_row(out_, b, step.input->dense + static_cast<size_t>(b) * out_.width, false);
  }
  void backward(Step&) override {}

 private:
  Tensor out_;
};

class LabelKernel : public Kernel {
 public:
  explicit LabelKernel(const KernelArgs& args)
      : out_(args.output), column_(static_cast<size_t>(label_column(args.node))) {}
  void forward(Step& step) override {
    const float* labels = step.input->labels;
    if (labels != nullptr) labels += column_ * step.batch;
    for (uint32_t b = step.first; b < step.end; ++b)
      *out_.f32(b) = labels == nullptr ? 0.0F : labels[b];
  }
  void backward(Step&) override {}

 private:
  Tensor out_;
  size_t column_;
};

class WeightKernel : public Kernel {
 public:
  explicit WeightKernel(const KernelArgs& args) : out_(args.output) {}
  void forward(Step& step) override {
    const float* weights = step.input->weights;
    for (uint32_t b = step.first; b < step.end; ++b)
      *out_.f32(b) = weights == nullptr ? 1.0F : weights[b];
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
  def.info.doc = "A label of the example.";
  def.make_kernel = make<LabelKernel>;
  return def;
}

OperatorDef weight_source() {
  OperatorDef def;
  def.info.name = "weight";
  def.info.doc = "The weight of the example.";
  def.make_kernel = make<WeightKernel>;
  return def;
}

}  // namespace

const OperatorDef* find_source(const std::string& name) {
  static const OperatorDef dense = dense_source();
  static const OperatorDef label = label_source();
  static const OperatorDef weight = weight_source();
  if (name == "dense") return &dense;
  if (name == "weight") return &weight;
  return name == "label" ? &label : nullptr;
}

int label_column(const Node& node) {
  if (node.op != "label") return -1;
  const auto column = node.attrs.find("column");
  return column == node.attrs.end() ? 0 : static_cast<int>(std::get<int64_t>(column->second));
}

}  // namespace flux
