// relu: max(0, x), element by element. NaN stays NaN, and its gradient is 0: it is not above 0. The
// relu of fc and the masks of the products do the same.
#include "flux/nn/elementwise.h"

namespace flux {
namespace {

struct Relu : ElementwiseFunction {
  using ElementwiseFunction::ElementwiseFunction;
  static float forward(float x) { return x < 0 ? 0.0F : x; }
  static float gradient(float x, float, float dy) { return x > 0 ? dy : 0.0F; }
  static double plain(double x) { return x < 0 ? 0 : x; }
};

}  // namespace

OperatorDef operator_relu() {
  return elementwise_operator<Relu>("relu", "max(0, x), element by element.");
}

}  // namespace flux
