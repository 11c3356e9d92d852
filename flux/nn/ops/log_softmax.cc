// log_softmax: x - log(sum of exp(x)), along features or positions.
#include <cmath>

#include "flux/nn/runs.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  context.node.length = context.inputs[0]->length;
  context.node.width = context.inputs[0]->width;
  return Status::ok();
}

struct LogSoftmax : RowFunction {
  LogSoftmax(const Graph& graph, const Node& node) : runs(node, input_of(graph, node, 0)) {}
  size_t scratch() const { return runs.n; }
  template <typename T>
  void forward(const Row<T>& row) const {
    T* x = row.scratch;
    for (size_t r = 0; r < runs.count(); ++r) {
      runs.read(row.x[0], r, x);
      const T top = *std::max_element(x, x + runs.n);
      T sum = 0;
      for (size_t k = 0; k < runs.n; ++k) sum += std::exp(x[k] - top);
      const T total = top + std::log(sum);
      T* y = row.y + runs.begin(r);
      for (size_t k = 0; k < runs.n; ++k) y[k * runs.inner] = x[k] - total;
    }
  }
  void backward(const RowGradient& row) const {
    for (size_t r = 0; r < runs.count(); ++r) {
      runs.read(row.dy, r, row.scratch);
      const float sum = sum_of(row.scratch, runs.n);
      const float* y = row.y + runs.begin(r);
      float* dx = row.dx[0] + runs.begin(r);
      for (size_t k = 0; k < runs.n; ++k)
        dx[k * runs.inner] = row.scratch[k] - std::exp(y[k * runs.inner]) * sum;
    }
  }
  static constexpr bool kNeedsOutput = true;

  Runs runs;
};

}  // namespace

OperatorDef operator_log_softmax() {
  return row_operator<LogSoftmax>("log_softmax",
                                  "x - log(sum of exp(x)), over features or positions.", 1, 1,
                                  infer, {over_attribute()});
}

}  // namespace flux
