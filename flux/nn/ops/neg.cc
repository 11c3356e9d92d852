// neg: -x, element by element.
#include "flux/nn/elementwise.h"

namespace flux {
namespace {

struct Neg : ElementwiseFunction {
  using ElementwiseFunction::ElementwiseFunction;
  static float forward(float x) { return -x; }
  static float derivative(float, float) { return -1.0F; }
  static double plain(double x) { return -x; }
};

}  // namespace

OperatorDef operator_neg() {
  return elementwise_operator<Neg>("neg", "-x, element by element.");
}

}  // namespace flux
