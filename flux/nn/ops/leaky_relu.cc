// leaky_relu: x where it is positive, else slope * x.
#include "flux/nn/elementwise.h"

namespace flux {
namespace {

struct LeakyRelu : ElementwiseFunction {
  explicit LeakyRelu(const Node& node)
      : ElementwiseFunction(node), slope(static_cast<float>(node.float_attr("slope"))) {}
  float forward(float x) const { return x > 0 ? x : slope * x; }
  float derivative(float x, float) const { return x > 0 ? 1.0F : slope; }
  double plain(double x) const { return x > 0 ? x : static_cast<double>(slope) * x; }

  float slope;
};

}  // namespace

OperatorDef operator_leaky_relu() {
  return elementwise_operator<LeakyRelu>(
      "leaky_relu", "x where it is positive, else slope * x.",
      {float_attribute("slope", 0.01, -10, 10, "slope of the negative side")});
}

}  // namespace flux
