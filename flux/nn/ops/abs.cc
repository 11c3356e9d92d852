// abs: the absolute value, element by element.
#include <cmath>

#include "flux/nn/elementwise.h"

namespace flux {
namespace {

struct Abs : ElementwiseFunction {
  using ElementwiseFunction::ElementwiseFunction;
  static float forward(float x) { return std::fabs(x); }
  static float derivative(float x, float) { return x > 0 ? 1.0F : (x < 0 ? -1.0F : 0.0F); }
  static double plain(double x) { return x < 0 ? -x : x; }
};

}  // namespace

OperatorDef operator_abs() {
  return elementwise_operator<Abs>("abs", "|x|, element by element; its gradient at 0 is 0.");
}

}  // namespace flux
