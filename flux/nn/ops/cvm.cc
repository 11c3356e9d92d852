// cvm: each position begins with two counters, show and click. They become log(show + 1) and
// log(click + 1) - log(show + 1), or are dropped; the rest is copied.
//
// Backward: the counters are facts, not weights, so their gradient is 0; the rest gets its gradient
// unchanged. (Systems in which counts travel to the servers inside gradients put the example's show
// and click there; here tables do not count, and the counters are what the data brings.)
#include <cmath>

#include "flux/nn/row_operator.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  const Node& input = *context.inputs[0];
  const bool keep = context.node.bool_attr("use_cvm");
  if (input.dim() < (keep ? 2 : 3))
    return context.fail(fmt::format("each position must begin with show and click{}, got {}",
                                    keep ? "" : " and have more features than those",
                                    context.shapes()));
  context.node.length = input.length;
  context.node.width = input.width - (keep ? 0 : 2 * input.length);
  return Status::ok();
}

struct Cvm : RowFunction {
  Cvm(const Graph& graph, const Node& node)
      : length(node.length), dim(input_of(graph, node, 0).dim()), out(node.dim()) {}
  // log(count + 1); counters are never negative.
  template <typename T>
  static T log_count(T count) {
    return std::log(std::max(count, T(0)) + T(1));
  }
  template <typename T>
  void forward(const Row<T>& row) const {
    for (size_t t = 0; t < length; ++t) {
      const T* x = row.x[0] + t * dim;
      T* y = row.y + t * out;
      std::copy_n(x + dim - out, out, y);
      if (out < dim) continue;
      y[0] = log_count(x[0]);
      y[1] = log_count(x[1]) - y[0];
    }
  }
  void backward(const RowGradient& row) const {
    for (size_t t = 0; t < length; ++t)
      std::copy_n(row.dy + t * out + out - (dim - 2), dim - 2, row.dx[0] + t * dim + 2);
  }

  size_t length, dim, out;
};

}  // namespace

OperatorDef operator_cvm() {
  return row_operator<Cvm>(
      "cvm",
      "Counters show and click at the head of each position as log(show + 1), log(click + 1) - "
      "log(show + 1); they get no gradient.",
      1, 1, infer, {bool_attribute("use_cvm", true, "whether to keep the two, else drop them")});
}

}  // namespace flux
