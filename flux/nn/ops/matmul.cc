// matmul: for each example the matrix product of two sequences, [T,d] x [S,d]^T or [T,d] x [d,S].
#include "flux/nn/row_operator.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  const Node &a = *context.inputs[0], &b = *context.inputs[1];
  const bool transposed = context.node.bool_attr("transpose_b");
  if (a.dim() != (transposed ? b.dim() : b.length))
    return context.fail(fmt::format("inputs must be [B,T,d] and {}, got {}",
                                    transposed ? "[B,S,d]" : "[B,d,S]", context.shapes()));
  context.node.length = a.length;
  context.node.width = a.length * (transposed ? b.length : b.dim());
  return Status::ok();
}

struct Matmul : RowFunction {
  Matmul(const Graph& graph, const Node& node)
      : transposed(node.bool_attr("transpose_b")),
        rows(node.length),
        columns(node.dim()),
        dim(input_of(graph, node, 0).dim()) {}
  size_t scratch() const { return transposed ? columns * dim : 0; }
  template <typename T>
  void forward(const Row<T>& row) const {
    const T *a = row.x[0], *b = row.x[1];
    if (transposed) {
      turn(b, columns, dim, row.scratch);
      b = row.scratch;
    }
    for (size_t t = 0; t < rows; ++t)
      row_times_matrix(a + t * dim, dim, b, columns, columns, row.y + t * columns);
  }
  void backward(const RowGradient& row) const {
    const float *a = row.x[0], *b = row.x[1];
    float *da = row.dx[0], *db = row.dx[1];
    for (size_t t = 0; t < rows; ++t) {
      const float* dy = row.dy + t * columns;
      if (transposed) {
        for (size_t s = 0; s < columns; ++s) {
          add_scaled(dy[s], b + s * dim, dim, da + t * dim);
          add_scaled(dy[s], a + t * dim, dim, db + s * dim);
        }
      } else {
        for (size_t c = 0; c < dim; ++c) {
          da[t * dim + c] += dot_of(dy, b + c * columns, columns);
          add_scaled(a[t * dim + c], dy, columns, db + c * columns);
        }
      }
    }
  }

  bool transposed;
  size_t rows, columns, dim;
};

}  // namespace

OperatorDef operator_matmul() {
  return row_operator<Matmul>(
      "matmul", "For each example [B,T,d] x [B,S,d] transposed, or x [B,d,S]: [B,T,S].", 2, 2,
      infer, {bool_attribute("transpose_b", true, "whether the second is [B,S,d], else [B,d,S]")});
}

}  // namespace flux
