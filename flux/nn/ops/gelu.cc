// gelu: x times the normal distribution function of x, by the exact error function.
#include <cmath>
#include <numbers>

#include "flux/nn/elementwise.h"
#include "flux/nn/vector_math.h"

namespace flux {
namespace {

constexpr float kDensity = 0.39894228F;  // 1 / sqrt(2 pi)

struct Gelu : ElementwiseFunction {
  using ElementwiseFunction::ElementwiseFunction;
  static float forward(float x) { return x * normal_below(x); }
  static float derivative(float x, float) {
    const float density = kDensity * exp_of(-0.5F * x * x);
    return normal_below(x) + x * density;
  }
  static double plain(double x) { return x * 0.5 * (1 + std::erf(x / std::numbers::sqrt2)); }
};

}  // namespace

OperatorDef operator_gelu() {
  return elementwise_operator<Gelu>("gelu", "x * P(normal < x), by the exact error function.");
}

}  // namespace flux
