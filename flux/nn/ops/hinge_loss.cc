// hinge_loss: max(0, margin - s z) of score z, where s is 1 for label 1 and -1 for label 0.
#include <algorithm>

#include "flux/nn/row_loss.h"
#include "flux/nn/vector_math.h"

namespace flux {
namespace {

struct HingeLoss : PointLoss {
  HingeLoss(const Graph&, const Node& node)
      : margin(static_cast<float>(node.float_attr("margin"))) {}
  template <typename T>
  T loss(const T* const* x, T label, T* prediction) const {
    *prediction = sigmoid(*x[0]);
    const T sign = label > T(0.5) ? T(1) : T(-1);
    return std::max(T(0), static_cast<T>(margin) - sign * *x[0]);
  }
  void gradient(const float* const* x, float label, float* const* dx) const {
    const float sign = label > 0.5F ? 1.0F : -1.0F;
    *dx[0] = sign * *x[0] < margin ? -sign : 0.0F;
  }

  float margin;
};

}  // namespace

OperatorDef operator_hinge_loss() {
  OperatorDef def = loss_operator<HingeLoss>(
      "hinge_loss",
      "max(0, margin - s z) of a score z [B,1], s = 1 for label 1 and -1 for label 0; predictions "
      "are the score's sigmoid.",
      infer_point_loss, {float_attribute("margin", 1, 0, 1e6, "score that is good enough")});
  def.info.probability_input = def.label_input;
  return def;
}

}  // namespace flux
