// huber_loss: half the squared difference of prediction and label, but linear beyond delta.
#include <cmath>

#include "flux/nn/row_loss.h"

namespace flux {
namespace {

struct HuberLoss : PointLoss {
  HuberLoss(const Graph&, const Node& node) : delta(static_cast<float>(node.float_attr("delta"))) {}
  template <typename T>
  T loss(const T* const* x, T label, T* prediction) const {
    *prediction = *x[0];
    const T far = std::fabs(*x[0] - label), limit = delta;
    return far <= limit ? T(0.5) * far * far : limit * (far - T(0.5) * limit);
  }
  void gradient(const float* const* x, float label, float* const* dx) const {
    const float far = *x[0] - label;
    *dx[0] = far > delta ? delta : (far < -delta ? -delta : far);
  }

  float delta;
};

}  // namespace

OperatorDef operator_huber_loss() {
  return loss_operator<HuberLoss>(
      "huber_loss",
      "Half the squared difference of a prediction [B,1] and a label, linear beyond delta; an "
      "optional weight [B,1].",
      infer_point_loss,
      {float_attribute("delta", 1, 1e-6, 1e6, "difference from which on it is linear")});
}

}  // namespace flux
