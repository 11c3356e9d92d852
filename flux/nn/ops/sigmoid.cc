// sigmoid: 1 / (1 + exp(-x)), element by element.
#include <cmath>

#include "flux/nn/elementwise.h"
#include "flux/nn/vector_math.h"

namespace flux {
namespace {

struct Sigmoid : ElementwiseFunction {
  using ElementwiseFunction::ElementwiseFunction;
  static constexpr bool kNeedsOutput = true;
  static float forward(float x) { return sigmoid(x); }
  static float derivative(float, float y) { return y * (1.0F - y); }
  static double plain(double x) { return 1 / (1 + std::exp(-x)); }
};

}  // namespace

OperatorDef operator_sigmoid() {
  return elementwise_operator<Sigmoid>("sigmoid", "1 / (1 + exp(-x)), element by element.");
}

}  // namespace flux
