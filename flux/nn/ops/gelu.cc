// gelu: x times the normal distribution function of x, by the exact error function.
#include <cmath>
#include <numbers>

#include "flux/nn/elementwise.h"

namespace flux {
namespace {

constexpr float kRootHalf = 0.70710678F;  // 1 / sqrt(2)
constexpr float kDensity = 0.39894228F;   // 1 / sqrt(2 pi)

struct Gelu : ElementwiseFunction {
  using ElementwiseFunction::ElementwiseFunction;
  static float forward(float x) { return x * 0.5F * (1.0F + std::erf(x * kRootHalf)); }
  static float derivative(float x, float) {
    const float below = 0.5F * (1.0F + std::erf(x * kRootHalf));
    const float density = kDensity * std::exp(-0.5F * x * x);
    return below + x * density;
  }
  static double plain(double x) { return x * 0.5 * (1 + std::erf(x / std::numbers::sqrt2)); }
};

}  // namespace

OperatorDef operator_gelu() {
  return elementwise_operator<Gelu>("gelu", "x * P(normal < x), by the exact error function.");
}

}  // namespace flux
