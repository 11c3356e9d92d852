// dropout: in training sets each number to 0 with the given probability and multiplies the others
// by 1 / (1 - rate); in prediction changes nothing.
//
// What is dropped is a pure function of the batch's noise, the layer's name, the row and the
// column, so the same batch drops the same numbers wherever it is trained, and backward() draws
// again what forward() drew.
#include <cmath>

#include "flux/base/hash.h"
#include "flux/nn/attribute_specs.h"
#include "flux/nn/operator.h"

namespace flux {
namespace {

// Draws 32 bits for each column by a hash of its own, of operations that vectorise.
class Drops {
 public:
  Drops(const Node& node, uint64_t noise)
      : key_(hash_bytes(node.name, noise)), threshold_(threshold_of(node)) {}
  static uint32_t threshold_of(const Node& node) {
    return static_cast<uint32_t>(std::lround(node.float_attr("rate") * kParts));
  }
  // 0 or 1 / (1 - rate), for each column of a row.
  template <typename T>
  void factors(uint32_t row, uint32_t width, T* to) const {
    const uint32_t threshold = threshold_;
    const T kept = T(1) / (T(1) - static_cast<T>(threshold) / T(kParts));
    const uint64_t row_key = hash_pair(key_, row);
    const auto low = static_cast<uint32_t>(row_key), high = static_cast<uint32_t>(row_key >> 32);
    for (uint32_t c = 0; c < width; ++c)
      to[c] = mix((c + low) ^ high) % kParts < threshold ? T(0) : kept;
  }

 private:
  static constexpr uint32_t kParts = 1U << 24;  // exact in a float
  // Every bit of the result depends on every bit of x.
  static uint32_t mix(uint32_t x) {
    x = (x ^ (x >> 16)) * 0x7feb352dU;
    x = (x ^ (x >> 15)) * 0x846ca68bU;
    return x ^ (x >> 16);
  }

  uint64_t key_;
  uint32_t threshold_;
};

Status infer(InferContext& context) {
  context.node.length = context.inputs[0]->length;
  context.node.width = context.inputs[0]->width;
  return Status::ok();
}

class DropoutKernel : public Kernel {
 public:
  explicit DropoutKernel(const KernelArgs& args)
      : node_(args.node),
        in_(args.inputs[0]),
        out_(args.output),
        out_gradient_(args.output_gradient),
        row_(out_.width),
        factors_(out_.width) {}

  void forward(Step& step) override {
    if (step.gradients != nullptr) return pass(step, in_.value, out_, false);
    for (uint32_t b = step.first; b < step.end; ++b)
      write_row(out_, b, read_row(in_.value, b, row_.data()), false);
  }
  void backward(Step& step) override {
    if (in_.gradient) pass(step, out_gradient_, in_.gradient, in_.add);
  }

 private:
  void pass(const Step& step, const Tensor& from, const Tensor& to, bool add) {
    const Drops drops(node_, step.input->noise);
    for (uint32_t b = step.first; b < step.end; ++b) {
      const float* x = read_row(from, b, row_.data());
      drops.factors(b, out_.width, factors_.data());
      for (uint32_t c = 0; c < out_.width; ++c) factors_[c] *= x[c];
      write_row(to, b, factors_.data(), add);
    }
  }

  const Node& node_;
  KernelInput in_;
  Tensor out_, out_gradient_;
  std::vector<float> row_, factors_;
};

void reference(const ReferenceCall& call) {
  const Drops drops(call.node, call.noise);
  const uint32_t width = call.node.width;
  for (uint32_t b = 0; b < call.batch; ++b) {
    double* y = call.output + static_cast<size_t>(b) * width;
    drops.factors(b, width, y);
    for (uint32_t c = 0; c < width; ++c) y[c] *= call.inputs[0][b * width + c];
  }
}

}  // namespace

OperatorDef operator_dropout() {
  OperatorDef def;
  def.info = {"dropout",
              "In training sets a share of the numbers to 0 and scales up the rest; in prediction "
              "changes nothing.",
              1,
              1,
              {required(float_attribute("rate", 0.5, 0, 0.99, "probability to be dropped"))}};
  def.infer = infer;
  def.reference = reference;
  def.forgets_output = [](const Node&) { return true; };
  def.make_kernel = [](const KernelArgs& args) -> Result<std::unique_ptr<Kernel>> {
    return std::unique_ptr<Kernel>(new DropoutKernel(args));
  };
  return def;
}

}  // namespace flux
