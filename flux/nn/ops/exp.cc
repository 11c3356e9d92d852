// exp: e to the power of x, element by element; x above 80 counts as 80, so that nothing overflows.
#include <algorithm>
#include <cmath>

#include "flux/nn/elementwise.h"
#include "flux/nn/vector_math.h"

namespace flux {
namespace {

struct Exp : ElementwiseFunction {
  using ElementwiseFunction::ElementwiseFunction;
  static constexpr bool kNeedsOutput = true;
  static float forward(float x) { return exp_of(std::min(x, 80.0F)); }
  static float derivative(float x, float y) { return x < 80.0F ? y : 0.0F; }
  static double plain(double x) { return std::exp(std::min(x, 80.0)); }
};

}  // namespace

OperatorDef operator_exp() {
  return elementwise_operator<Exp>(
      "exp", "exp(x), element by element; x above 80 counts as 80 (there the gradient is 0).");
}

}  // namespace flux
