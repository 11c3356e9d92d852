// tanh: the hyperbolic tangent, element by element.
#include <cmath>

#include "flux/nn/elementwise.h"
#include "flux/nn/vector_math.h"

namespace flux {
namespace {

struct Tanh : ElementwiseFunction {
  using ElementwiseFunction::ElementwiseFunction;
  static constexpr bool kNeedsOutput = true;
  static float forward(float x) { return tanh_of(x); }
  static float derivative(float, float y) { return 1.0F - y * y; }
  static double plain(double x) { return std::tanh(x); }
};

}  // namespace

OperatorDef operator_tanh() {
  return elementwise_operator<Tanh>("tanh", "tanh(x), element by element.");
}

}  // namespace flux
