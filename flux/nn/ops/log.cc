// log: the natural logarithm of max(x, epsilon), element by element.
#include <algorithm>
#include <cmath>

#include "flux/nn/elementwise.h"
#include "flux/nn/vector_math.h"

namespace flux {
namespace {

struct Log : ElementwiseFunction {
  explicit Log(const Node& node)
      : ElementwiseFunction(node), epsilon(static_cast<float>(node.float_attr("epsilon"))) {}
  float forward(float x) const { return log_of(std::max(x, epsilon)); }
  float derivative(float x, float) const { return x > epsilon ? 1.0F / x : 0.0F; }
  double plain(double x) const { return std::log(std::max(x, static_cast<double>(epsilon))); }

  float epsilon;
};

}  // namespace

OperatorDef operator_log() {
  return elementwise_operator<Log>(
      "log", "log(max(x, epsilon)), element by element; below epsilon the gradient is 0.",
      {float_attribute("epsilon", 1e-6, 1e-30, 1, "smallest number whose logarithm is taken")});
}

}  // namespace flux
