// pow: x to a fixed power, element by element. A whole exponent that is not negative takes any x;
// every other exponent takes max(x, 1e-6), because roots and reciprocals end there.
#include <algorithm>
#include <cmath>

#include "flux/nn/elementwise.h"

namespace flux {
namespace {

constexpr float kSmallest = 1e-6F;

struct Pow : ElementwiseFunction {
  explicit Pow(const Node& node)
      : ElementwiseFunction(node),
        exponent(static_cast<float>(node.float_attr("exponent"))),
        any_x(exponent >= 0 && exponent == std::floor(exponent)) {}
  float forward(float x) const { return std::pow(any_x ? x : std::max(x, kSmallest), exponent); }
  float derivative(float x, float) const {
    if (exponent == 0 || (!any_x && x < kSmallest)) return 0.0F;
    return exponent * std::pow(x, exponent - 1);
  }
  double plain(double x) const {
    return std::pow(any_x ? x : std::max(x, static_cast<double>(kSmallest)), exponent);
  }

  float exponent;
  bool any_x;
};

}  // namespace

OperatorDef operator_pow() {
  return elementwise_operator<Pow>(
      "pow",
      "x to a fixed power, element by element; of max(x, 1e-6) unless the exponent is a whole "
      "number that is not negative.",
      {required(float_attribute("exponent", 2, -16, 16, "the power"))});
}

}  // namespace flux
