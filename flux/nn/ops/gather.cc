// gather: the listed features of a value (of each position), in the order of the list.
#include <charconv>

#include "flux/nn/row_operator.h"

namespace flux {
namespace {

// The column that a word names, or -1.
int64_t column_of(const std::string& word) {
  int64_t column = -1;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), column);
  return error == std::errc() && end == word.data() + word.size() ? column : -1;
}

Status infer(InferContext& context) {
  const Node& input = *context.inputs[0];
  const std::vector<std::string>& words = context.node.texts_attr("columns");
  if (words.empty()) return context.fail("'columns' must name at least one feature");
  for (const std::string& word : words) {
    const int64_t column = column_of(word);
    if (column < 0 || column >= input.dim())
      return context.fail(
          fmt::format("'columns' must be integers from 0 to {}, got '{}'; the input is {}",
                      input.dim() - 1, word, context.shapes()));
  }
  context.node.length = input.length;
  context.node.width = input.length * static_cast<uint32_t>(words.size());
  return Status::ok();
}

struct Gather : RowFunction {
  Gather(const Graph& graph, const Node& node)
      : length(node.length), dim(input_of(graph, node, 0).dim()) {
    for (const std::string& word : node.texts_attr("columns"))
      columns.push_back(static_cast<size_t>(column_of(word)));
  }
  template <typename T>
  void forward(const Row<T>& row) const {
    T* y = row.y;
    for (size_t t = 0; t < length; ++t)
      for (const size_t c : columns) *y++ = row.x[0][t * dim + c];
  }
  void backward(const RowGradient& row) const {
    const float* dy = row.dy;
    for (size_t t = 0; t < length; ++t)
      for (const size_t c : columns) row.dx[0][t * dim + c] += *dy++;
  }

  size_t length, dim;
  std::vector<size_t> columns;
};

}  // namespace

OperatorDef operator_gather() {
  return row_operator<Gather>(
      "gather", "The listed features (of each position), in that order; one may come twice.", 1, 1,
      infer, {required(texts_attribute("columns", "features, counted from 0: [0, 3, 7]"))});
}

}  // namespace flux
