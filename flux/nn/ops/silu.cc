// silu: x * sigmoid(x), also known as swish.
#include <cmath>

#include "flux/nn/elementwise.h"
#include "flux/nn/vector_math.h"

namespace flux {
namespace {

struct Silu : ElementwiseFunction {
  using ElementwiseFunction::ElementwiseFunction;
  static float forward(float x) { return x * sigmoid(x); }
  static float derivative(float x, float) {
    const float s = sigmoid(x);
    return s * (1.0F + x * (1.0F - s));
  }
  static double plain(double x) { return x / (1 + std::exp(-x)); }
};

}  // namespace

OperatorDef operator_silu() {
  return elementwise_operator<Silu>("silu", "x * sigmoid(x), also known as swish.");
}

}  // namespace flux
