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
        whole(exponent == std::floor(exponent)),
        any_x(exponent >= 0 && whole) {}
  float forward(float x) const { return power(any_x ? x : std::max(x, kSmallest), exponent); }
  float derivative(float x, float) const {
    const bool flat = exponent == 0 || (!any_x && x < kSmallest);
    const float base = flat ? 1.0F : x;
    return flat ? 0.0F : exponent * power(base, exponent - 1);
  }
  // By squarings if the exponent is whole: they vectorise.
  float power(float x, float e) const {
    if (!whole) return std::pow(x, e);
    const auto n = static_cast<uint32_t>(std::fabs(e));
    const float x2 = x * x, x4 = x2 * x2, x8 = x4 * x4;
    const float y = ((n & 1) != 0 ? x : 1.0F) * ((n & 2) != 0 ? x2 : 1.0F) *
                    ((n & 4) != 0 ? x4 : 1.0F) * ((n & 8) != 0 ? x8 : 1.0F) *
                    ((n & 16) != 0 ? x8 * x8 : 1.0F);
    return e < 0 ? 1.0F / y : y;
  }
  double plain(double x) const {
    return std::pow(any_x ? x : std::max(x, static_cast<double>(kSmallest)), exponent);
  }

  float exponent;
  bool whole, any_x;
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
