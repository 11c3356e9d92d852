// softmax: exp(x) over its sum, along features or positions; masked entries become 0.
#include "flux/nn/runs.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  const Runs runs(context.node, *context.inputs[0]);
  FLUX_RETURN_IF_ERROR(check_run_mask(context, runs.n));
  context.node.length = context.inputs[0]->length;
  context.node.width = context.inputs[0]->width;
  return Status::ok();
}

struct Softmax : RowFunction {
  Softmax(const Graph& graph, const Node& node)
      : runs(node, input_of(graph, node, 0)), masked(node.inputs.size() > 1) {}
  size_t scratch() const { return 3 * runs.n; }
  template <typename T>
  void forward(const Row<T>& row) const {
    for (size_t r = 0; r < runs.count(); ++r) {
      runs.read(row.x[0], r, row.scratch);
      softmax_in_place(row.scratch, masked ? row.x[1] : nullptr, runs.n);
      T* y = row.y + runs.begin(r);
      for (size_t k = 0; k < runs.n; ++k) y[k * runs.inner] = row.scratch[k];
    }
  }
  void backward(const RowGradient& row) const {
    float *y = row.scratch, *dy = y + runs.n, *dx = dy + runs.n;
    for (size_t r = 0; r < runs.count(); ++r) {
      runs.read(row.y, r, y);
      runs.read(row.dy, r, dy);
      std::fill_n(dx, runs.n, 0.0F);
      add_softmax_gradient(y, dy, runs.n, dx);
      float* to = row.dx[0] + runs.begin(r);
      for (size_t k = 0; k < runs.n; ++k) to[k * runs.inner] = dx[k];
    }
  }
  static constexpr bool kNeedsOutput = true;

  Runs runs;
  bool masked;
};

}  // namespace

OperatorDef operator_softmax() {
  return row_operator<Softmax>(
      "softmax",
      "exp(x) over its sum, over features or positions; a second input masks (0: left out).", 1, 2,
      infer, {over_attribute()});
}

}  // namespace flux
