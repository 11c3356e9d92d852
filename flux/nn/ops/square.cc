// square: x * x, element by element.
#include "flux/nn/elementwise.h"

namespace flux {
namespace {

struct Square : ElementwiseFunction {
  using ElementwiseFunction::ElementwiseFunction;
  static float forward(float x) { return x * x; }
  static float derivative(float x, float) { return 2.0F * x; }
  static double plain(double x) { return x * x; }
};

}  // namespace

OperatorDef operator_square() {
  return elementwise_operator<Square>("square", "x * x, element by element.");
}

}  // namespace flux
