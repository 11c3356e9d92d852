// BroadcastOperator<F>: the whole of an element-wise operator of several inputs whose shapes are
// stretched to a common one: an input may have one feature where others have d, and one position
// where others have T. So [B,1] and [B,n] go with [B,n]; [B,T,1] and [B,d] go with [B,T,d]. Inputs
// of one width always go together, however they are divided into positions.
//
// F is made from the node (derive from BroadcastFunction if it has no attributes) and has two
// functions over arrays of one length n:
//   template <typename T> void forward(std::span<const T* const> x, size_t n, T* y) const;
//   void backward(std::span<const float* const> x, const float* dy, size_t n,
//                 std::span<float* const> dx) const;                // writes all of dx
// The gradient of a stretched input is the sum over what it was stretched to.
#pragma once

#include <span>
#include <vector>

#include "flux/nn/row_operator.h"

namespace flux {

struct BroadcastFunction {
  explicit BroadcastFunction(const Node&) {}
};

template <typename F>
class Broadcast : public RowFunction {
 public:
  Broadcast(const Graph& graph, const Node& node)
      : f_(node), length_(node.length), dim_(node.dim()) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Node& input = input_of(graph, node, i);
      inputs_.push_back({input.length, input.dim()});
    }
  }
  size_t scratch() const { return 2 * inputs_.size() * width(); }

  template <typename T>
  void forward(const Row<T>& row) const {
    const T* x[kInputsMax] = {};
    stretch_all(row.x, row.scratch, x);
    f_.template forward<T>({x, inputs_.size()}, width(), row.y);
  }
  void backward(const RowGradient& row) const {
    const float* x[kInputsMax] = {};
    float* dx[kInputsMax] = {};
    stretch_all(row.x, row.scratch, x);
    for (size_t i = 0; i < inputs_.size(); ++i)
      dx[i] = is_whole(i) ? row.dx[i] : row.scratch + (inputs_.size() + i) * width();
    f_.backward({x, inputs_.size()}, row.dy, width(), {dx, inputs_.size()});
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (!is_whole(i)) contract(i, dx[i], row.dx[i]);
  }

  static constexpr size_t kInputsMax = 64;

 private:
  struct Shape {
    size_t length, dim;
  };
  size_t width() const { return length_ * dim_; }
  bool is_whole(size_t i) const { return inputs_[i].length * inputs_[i].dim == width(); }
  // Where element (t, c) of the result comes from.
  size_t from(size_t i, size_t t, size_t c) const {
    return (inputs_[i].length == 1 ? 0 : t * inputs_[i].dim) + (inputs_[i].dim == 1 ? 0 : c);
  }
  template <typename T>
  void stretch_all(const T* const* given, T* scratch, const T** x) const {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      x[i] = given[i];
      if (is_whole(i)) continue;
      T* to = scratch + i * width();
      for (size_t t = 0; t < length_; ++t)
        for (size_t c = 0; c < dim_; ++c) to[t * dim_ + c] = given[i][from(i, t, c)];
      x[i] = to;
    }
  }
  void contract(size_t i, const float* wide, float* to) const {
    for (size_t t = 0; t < length_; ++t)
      for (size_t c = 0; c < dim_; ++c) to[from(i, t, c)] += wide[t * dim_ + c];
  }

  F f_;
  size_t length_, dim_;
  std::vector<Shape> inputs_;
};

inline Status infer_broadcast(InferContext& context) {
  uint32_t length = 1, dim = 1;
  bool same_width = true;
  for (const Node* input : context.inputs) {
    length = std::max(length, input->length);
    dim = std::max(dim, input->dim());
    same_width = same_width && input->width == context.inputs[0]->width;
  }
  context.node.length = same_width ? context.inputs[0]->length : length;
  context.node.width = same_width ? context.inputs[0]->width : length * dim;
  if (same_width) return Status::ok();
  for (const Node* input : context.inputs) {
    const bool fits = (input->length == 1 || input->length == length) &&
                      (input->dim() == 1 || input->dim() == dim);
    if (!fits)
      return context.fail(fmt::format(
          "inputs must have one shape, or 1 where another has more; got {}", context.shapes()));
  }
  return Status::ok();
}

template <typename F>
OperatorDef broadcast_operator(const char* name, const char* doc, int inputs_min, int inputs_max,
                               std::vector<AttrSpec> attrs = {}) {
  return row_operator<Broadcast<F>>(name, doc, inputs_min, inputs_max, infer_broadcast,
                                    std::move(attrs));
}

}  // namespace flux
