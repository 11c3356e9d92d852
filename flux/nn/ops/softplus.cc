// softplus: log(1 + exp(x)), element by element.
#include <algorithm>
#include <cmath>

#include "flux/nn/elementwise.h"
#include "flux/nn/vector_math.h"

namespace flux {
namespace {

struct Softplus : ElementwiseFunction {
  using ElementwiseFunction::ElementwiseFunction;
  static float forward(float x) { return softplus_of(x); }
  static float derivative(float x, float) { return sigmoid(x); }
  static double plain(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }
};

}  // namespace

OperatorDef operator_softplus() {
  return elementwise_operator<Softplus>("softplus", "log(1 + exp(x)), element by element.");
}

}  // namespace flux
