// mse_loss: the squared difference of prediction and label.
#include "flux/nn/row_loss.h"

namespace flux {
namespace {

struct MseLoss : PointLoss {
  MseLoss(const Graph&, const Node&) {}
  template <typename T>
  static T loss(const T* const* x, T label, T* prediction) {
    *prediction = *x[0];
    return (*x[0] - label) * (*x[0] - label);
  }
  static void gradient(const float* const* x, float label, float* const* dx) {
    *dx[0] = 2.0F * (*x[0] - label);
  }
};

}  // namespace

OperatorDef operator_mse_loss() {
  return loss_operator<MseLoss>(
      "mse_loss",
      "Mean squared difference of a prediction [B,1] and a label, by an optional weight [B,1].",
      infer_point_loss);
}

}  // namespace flux
