// gate: the experts' outputs, weighted by the softmax of one logit per expert (MMoE, PLE).
#include "flux/nn/weighted_sum.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  const uint32_t dim = context.inputs[1]->dim();
  uint32_t experts = 0;
  for (const Node* value : context.inputs.subspan(1)) {
    if (value->dim() != dim)
      return context.fail(fmt::format("all experts must have the same number of features, got {}",
                                      context.shapes()));
    experts += value->length;
  }
  if (context.inputs[0]->width != experts)
    return context.fail(
        fmt::format("the first input must have one logit for each of the {} experts, got {}",
                    experts, context.shapes()));
  context.node.width = dim;
  return Status::ok();
}

}  // namespace

OperatorDef operator_gate() {
  return row_operator<WeightedSum<false>>(
      "gate",
      "Sum of experts [B,E,d] (one or more such inputs), weighted by logits [B,E], the first "
      "input.",
      2, 64, infer,
      {choice_attribute("normalize", {"softmax", "none"}, "what makes weights of the logits")});
}

}  // namespace flux
