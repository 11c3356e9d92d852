// div: the quotient of two inputs. A divisor nearer to zero than epsilon counts as epsilon with its
// sign (zero is positive); there the divisor gets no gradient.
#include <cmath>

#include "flux/nn/broadcast.h"

namespace flux {
namespace {

struct Div : BroadcastFunction {
  explicit Div(const Node& node)
      : BroadcastFunction(node), epsilon(static_cast<float>(node.float_attr("epsilon"))) {}
  template <typename T>
  T divisor(T b) const {
    return std::fabs(b) >= T(epsilon) ? b : (b < 0 ? -T(epsilon) : T(epsilon));
  }
  template <typename T>
  void forward(std::span<const T* const> x, size_t n, T* y) const {
    const T *a = x[0], *b = x[1];
    for (size_t c = 0; c < n; ++c) y[c] = a[c] / divisor(b[c]);
  }
  void backward(std::span<const float* const> x, const float* dy, size_t n,
                std::span<float* const> dx) const {
    const float *a = x[0], *b = x[1];
    for (size_t c = 0; c < n; ++c) {
      const float d = divisor(b[c]);
      dx[0][c] = dy[c] / d;
      dx[1][c] = std::fabs(b[c]) >= epsilon ? -dy[c] * a[c] / (d * d) : 0.0F;
    }
  }

  float epsilon;
};

}  // namespace

OperatorDef operator_div() {
  return broadcast_operator<Div>(
      "div", "a / b, element by element, with broadcasting; |b| is at least epsilon.", 2, 2,
      {float_attribute("epsilon", 1e-6, 1e-30, 1, "smallest size of a divisor")});
}

}  // namespace flux
