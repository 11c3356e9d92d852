// relu: max(0, x), element by element.
#include "flux/nn/elementwise.h"

namespace flux {
namespace {

struct Relu : ElementwiseFunction {
  using ElementwiseFunction::ElementwiseFunction;
  static float forward(float x) { return x > 0 ? x : 0.0F; }
  static float derivative(float x, float) { return x > 0 ? 1.0F : 0.0F; }
  static double plain(double x) { return x > 0 ? x : 0; }
};

}  // namespace

OperatorDef operator_relu() {
  return elementwise_operator<Relu>("relu", "max(0, x), element by element.");
}

}  // namespace flux
