// elu: x where it is positive, else alpha * (exp(x) - 1).
#include <algorithm>
#include <cmath>

#include "flux/nn/elementwise.h"
#include "flux/nn/vector_math.h"

namespace flux {
namespace {

struct Elu : ElementwiseFunction {
  explicit Elu(const Node& node)
      : ElementwiseFunction(node), alpha(static_cast<float>(node.float_attr("alpha"))) {}
  static constexpr bool kNeedsOutput = true;
  float forward(float x) const {
    const float low = std::min(x, 0.0F);
    // Near zero exp(x) - 1 cancels; the series is exact enough there.
    const float near = low * (1.0F + low * (0.5F + low * (1.0F / 6.0F + low * (1.0F / 24.0F))));
    const float far = exp_of(low) - 1.0F;
    return x > 0 ? x : alpha * (low > -0.1F ? near : far);
  }
  float derivative(float x, float y) const { return x > 0 ? 1.0F : y + alpha; }
  double plain(double x) const {
    return x > 0 ? x : static_cast<double>(alpha) * (std::exp(x) - 1);
  }

  float alpha;
};

}  // namespace

OperatorDef operator_elu() {
  return elementwise_operator<Elu>(
      "elu", "x where it is positive, else alpha * (exp(x) - 1).",
      {float_attribute("alpha", 1, 0, 100, "what the negative side tends to, negated")});
}

}  // namespace flux
