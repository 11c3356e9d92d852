// What the inputs of a loss must be, and the example weights that it may have.
// LossWeights is part of a kernel: one thread.
#pragma once

#include "flux/base/text.h"
#include "flux/nn/operator.h"

namespace flux {

// A loss of predictions of this width (0: any) against a label, with the example's weight as an
// optional last input: [prediction, label] or [prediction, label, weight].
inline Status check_loss_inputs(const InferContext& context, uint32_t width) {
  const Node& prediction = *context.inputs[0];
  const Node& label = *context.inputs[1];
  if (label.op != "label" || prediction.op == "label")
    return context.fail(
        fmt::format("inputs must be what is predicted and then a label ({}), got {}",
                    join(context.model.labels, ", "), context.shapes()));
  if (width != 0 && prediction.width != width)
    return context.fail(
        fmt::format("what is predicted must be [B,{}], got {}; end the model with "
                    "an fc of units: {}",
                    width, context.shapes(), width));
  if (context.inputs.size() < 3) return Status::ok();
  const Node& weight = *context.inputs[2];
  if (weight.width != 1 || weight.trainable)
    return context.fail(fmt::format("the weight must be [B,1] and depend on the data alone, got {}",
                                    context.shapes()));
  return Status::ok();
}

// Weights of examples: the given input of a loss, or 1.
class LossWeights {
 public:
  LossWeights(const KernelArgs& args, size_t input)
      : value_(input < args.inputs.size() ? args.inputs[input].value : Tensor{}) {}
  float of(uint32_t example) const {
    if (!value_) return 1.0F;
    float scratch;
    return *read_row(value_, example, &scratch);
  }
  explicit operator bool() const { return static_cast<bool>(value_); }

 private:
  Tensor value_;
};

// The same for references.
inline double loss_weight(const ReferenceCall& call, size_t input, uint32_t example) {
  return input < call.inputs.size() ? call.inputs[input][example] : 1.0;
}

}  // namespace flux
