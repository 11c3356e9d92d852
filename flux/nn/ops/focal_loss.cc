// focal_loss: the logistic loss, multiplied by (1 - p)^gamma for the probability p that the model
// gives to the true label, so that what is easy counts less; label 1 counts alpha, label 0
// 1 - alpha.
#include <cmath>

#include "flux/nn/row_loss.h"
#include "flux/nn/vector_math.h"

namespace flux {
namespace {

struct FocalLoss : PointLoss {
  FocalLoss(const Graph&, const Node& node)
      : gamma(static_cast<float>(node.float_attr("gamma"))),
        alpha(static_cast<float>(node.float_attr("alpha"))) {}
  // Of the logit for the true label: its loss.
  template <typename T>
  T part(T z) const {
    return std::pow(sigmoid(-z), static_cast<T>(gamma)) * softplus_of(-z);
  }
  float slope(float z) const {
    const float missed = sigmoid(-z), hit = sigmoid(z);
    return -std::pow(missed, gamma) * (gamma * hit * softplus_of(-z) + missed);
  }
  template <typename T>
  T loss(const T* const* x, T label, T* prediction) const {
    const T z = *x[0], one = alpha;
    *prediction = sigmoid(z);
    return label * one * part(z) + (1 - label) * (1 - one) * part(-z);
  }
  void gradient(const float* const* x, float label, float* const* dx) const {
    const float z = *x[0];
    *dx[0] = label * alpha * slope(z) - (1 - label) * (1 - alpha) * slope(-z);
  }

  float gamma, alpha;
};

}  // namespace

OperatorDef operator_focal_loss() {
  OperatorDef def = loss_operator<FocalLoss>(
      "focal_loss",
      "Log loss of a logit [B,1] against a label, times (1 - p of the true label)^gamma; "
      "predictions are the logit's sigmoid.",
      infer_point_loss,
      {float_attribute("gamma", 2, 0, 16, "how much less the easy examples count"),
       float_attribute("alpha", 0.25, 0, 1, "weight of label 1; label 0 has 1 - alpha")});
  def.info.probability_input = def.label_input;
  return def;
}

}  // namespace flux
