// log_softmax: x - log(sum of exp(x)), along features or positions.
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
  size_t scratch() const { return 2 * runs.n; }
  template <typename T>
  void forward(const Row<T>& row) const {
    T* x = row.scratch;
    for (size_t r = 0; r < runs.count(); ++r) {
      runs.read(row.x[0], r, x);
      const T total = log_sum_exp(x, runs.n, row.scratch + runs.n);
      T* y = row.y + runs.begin(r);
      for (size_t k = 0; k < runs.n; ++k) y[k * runs.inner] = x[k] - total;
    }
  }
  void backward(const RowGradient& row) const {
    float *dy = row.scratch, *y = dy + runs.n;
    for (size_t r = 0; r < runs.count(); ++r) {
      runs.read(row.dy, r, dy);
      runs.read(row.y, r, y);
      const float sum = sum_of(dy, runs.n);
      for (size_t k = 0; k < runs.n; ++k) y[k] = dy[k] - exp_of(y[k]) * sum;
      float* dx = row.dx[0] + runs.begin(r);
      for (size_t k = 0; k < runs.n; ++k) dx[k * runs.inner] = y[k];
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
