// slice: features or positions [begin, end) of a value.
#include "flux/nn/runs.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  const Node& input = *context.inputs[0];
  const Runs runs(context.node, input);
  const int64_t begin = context.node.int_attr("begin"), end = context.node.int_attr("end");
  if (begin >= end || end > static_cast<int64_t>(runs.n))
    return context.fail(fmt::format(
        "'begin' must be below 'end' and 'end' at most {}, got {} and {}; the input is {}", runs.n,
        begin, end, context.shapes()));
  const auto kept = static_cast<uint32_t>(end - begin);
  context.node.length = runs.positions ? kept : input.length;
  context.node.width = static_cast<uint32_t>(runs.count()) * kept;
  return Status::ok();
}

struct Slice : RowFunction {
  Slice(const Graph& graph, const Node& node)
      : runs(node, input_of(graph, node, 0)),
        skip(static_cast<size_t>(node.int_attr("begin")) * runs.inner),
        kept(node.width / runs.outer) {}
  template <typename T>
  void forward(const Row<T>& row) const {
    for (size_t o = 0; o < runs.outer; ++o)
      std::copy_n(row.x[0] + o * runs.n * runs.inner + skip, kept, row.y + o * kept);
  }
  void backward(const RowGradient& row) const {
    for (size_t o = 0; o < runs.outer; ++o)
      std::copy_n(row.dy + o * kept, kept, row.dx[0] + o * runs.n * runs.inner + skip);
  }

  Runs runs;
  size_t skip, kept;  // numbers of each of the outer parts
};

}  // namespace

OperatorDef operator_slice() {
  return row_operator<Slice>(
      "slice", "Features (of each position) or positions [begin, end) of a value.", 1, 1, infer,
      {required(int_attribute("begin", 0, 0, 1 << 24, "first one taken, counted from 0")),
       required(int_attribute("end", 1, 1, 1 << 24, "first one behind those taken")),
       over_attribute()});
}

}  // namespace flux
