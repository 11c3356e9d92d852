// attention_pooling: the positions of a sequence summed with weights that are given as scores, as
// the last step of DIN's attention (docs/using/layers.md shows the whole).
#include "flux/nn/weighted_sum.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  const uint32_t length = context.inputs[1]->length;
  const bool fits = context.inputs[0]->width == length &&
                    (context.inputs.size() == 2 || context.inputs[2]->width == length);
  if (!fits)
    return context.fail(
        fmt::format("inputs must be scores [B,T], values [B,T,d] and perhaps a mask [B,T], got {}",
                    context.shapes()));
  context.node.width = context.inputs[1]->dim();
  return Status::ok();
}

}  // namespace

OperatorDef operator_attention_pooling() {
  return row_operator<WeightedSum<true>>(
      "attention_pooling",
      "Sum over positions of values [B,T,d] weighted by scores [B,T]; a third input masks.", 2, 3,
      infer,
      {choice_attribute("normalize", {"none", "softmax"}, "what makes weights of the scores")});
}

}  // namespace flux
