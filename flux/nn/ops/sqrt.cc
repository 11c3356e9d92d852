// sqrt: the square root of max(x, epsilon), element by element.
#include <algorithm>
#include <cmath>

#include "flux/nn/elementwise.h"

namespace flux {
namespace {

struct Sqrt : ElementwiseFunction {
  explicit Sqrt(const Node& node)
      : ElementwiseFunction(node), epsilon(static_cast<float>(node.float_attr("epsilon"))) {}
  static constexpr bool kNeedsOutput = true;
  float forward(float x) const { return std::sqrt(std::max(x, epsilon)); }
  float derivative(float x, float y) const { return x > epsilon ? 0.5F / y : 0.0F; }
  double plain(double x) const { return std::sqrt(std::max(x, static_cast<double>(epsilon))); }

  float epsilon;
};

}  // namespace

OperatorDef operator_sqrt() {
  return elementwise_operator<Sqrt>(
      "sqrt", "sqrt(max(x, epsilon)), element by element; below epsilon the gradient is 0.",
      {float_attribute("epsilon", 1e-12, 1e-30, 1, "smallest number whose root is taken")});
}

}  // namespace flux
