// scale: factor * x + bias, element by element.
#include "flux/nn/elementwise.h"

namespace flux {
namespace {

struct Scale : ElementwiseFunction {
  explicit Scale(const Node& node)
      : ElementwiseFunction(node),
        factor(static_cast<float>(node.float_attr("factor"))),
        bias(static_cast<float>(node.float_attr("bias"))) {}
  float forward(float x) const { return factor * x + bias; }
  float derivative(float, float) const { return factor; }
  double plain(double x) const { return static_cast<double>(factor) * x + bias; }

  float factor;
  float bias;
};

}  // namespace

OperatorDef operator_scale() {
  return elementwise_operator<Scale>(
      "scale", "factor * x + bias, element by element.",
      {float_attribute("factor", 1, -1e6, 1e6, "what x is multiplied with"),
       float_attribute("bias", 0, -1e6, 1e6, "what is added then")});
}

}  // namespace flux
