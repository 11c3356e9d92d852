// softmax_cross_entropy: -log of the probability that the softmax of the logits gives to the class
// whose number is the label. Readers refuse a label that is no class (data/label_check.h); here it
// counts as the nearest one.
#include <algorithm>
#include <cmath>

#include "flux/nn/row_loss.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  FLUX_RETURN_IF_ERROR(check_loss_inputs(context, 0));
  if (context.inputs[0]->width < 2)
    return context.fail(
        fmt::format("needs one logit for each of two or more classes, got {}", context.shapes()));
  context.node.width = 1;
  return Status::ok();
}

struct SoftmaxCrossEntropy : PointLoss {
  SoftmaxCrossEntropy(const Graph& graph, const Node& node)
      : classes(input_of(graph, node, 0).width) {}
  template <typename T>
  size_t class_of(T label) const {
    return static_cast<size_t>(std::clamp(std::round(label), T(0), static_cast<T>(classes - 1)));
  }
  template <typename T>
  T loss(const T* const* x, T label, T* prediction) const {
    const T* z = x[0];
    const T* top = std::max_element(z, z + classes);
    *prediction = static_cast<T>(top - z);
    T sum = 0;
    for (size_t c = 0; c < classes; ++c) sum += std::exp(z[c] - *top);
    return *top + std::log(sum) - z[class_of(label)];
  }
  void gradient(const float* const* x, float label, float* const* dx) const {
    std::copy_n(x[0], classes, dx[0]);
    softmax_in_place<float>(dx[0], nullptr, classes);
    dx[0][class_of(label)] -= 1.0F;
  }

  size_t classes;
};

}  // namespace

OperatorDef operator_softmax_cross_entropy() {
  return loss_operator<SoftmaxCrossEntropy>(
      "softmax_cross_entropy",
      "-log softmax of logits [B,classes] at the label, a class counted from 0; an optional weight "
      "[B,1]; predictions are the likeliest class.",
      infer);
}

}  // namespace flux
