// reshape: the same numbers as another number of positions: [B,n] as [B,length,n / length].
#include "flux/nn/row_operator.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  const auto length = static_cast<uint32_t>(context.node.int_attr("length"));
  const uint32_t width = context.inputs[0]->width;
  if (width % length != 0)
    return context.fail(fmt::format("{} numbers cannot be split into 'length: {}' positions: {}",
                                    width, length, context.shapes()));
  context.node.length = length;
  context.node.width = width;
  return Status::ok();
}

struct Reshape : RowFunction {
  Reshape(const Graph&, const Node& node) : width(node.width) {}
  template <typename T>
  void forward(const Row<T>& row) const {
    std::copy_n(row.x[0], width, row.y);
  }
  void backward(const RowGradient& row) const { std::copy_n(row.dy, width, row.dx[0]); }

  size_t width;
};

}  // namespace

OperatorDef operator_reshape() {
  return row_operator<Reshape>(
      "reshape", "The same numbers as a sequence of `length` positions; length 1 flattens.", 1, 1,
      infer, {required(int_attribute("length", 1, 1, 1 << 16, "positions of the result"))});
}

}  // namespace flux
