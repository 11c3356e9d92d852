// WeightedSum: the sum of the positions of one or more values, weighted by scores (as they are, or
// after a softmax over all of them); what `gate` and `attention_pooling` share. Scores that a mask
// (the last input, if kMask) sets to 0 count for nothing.
#pragma once

#include "flux/nn/row_operator.h"

namespace flux {

template <bool kMask>
class WeightedSum : public RowFunction {
 public:
  WeightedSum(const Graph& graph, const Node& node)
      : softmax_(node.text_attr("normalize") == "softmax"), dim_(node.width) {
    const size_t inputs = node.inputs.size();
    mask_ = kMask && inputs == 3 ? 2 : 0;
    for (size_t i = 1; i < (kMask ? 2 : inputs); ++i) {
      lengths_.push_back(input_of(graph, node, i).length);
      total_ += lengths_.back();
    }
  }
  size_t scratch() const { return 2 * total_; }

  template <typename T>
  void forward(const Row<T>& row) const {
    T* w = row.scratch;
    weights(row.x, w);
    std::fill_n(row.y, dim_, T(0));
    for (size_t i = 0; i < lengths_.size(); ++i)
      for (size_t t = 0; t < lengths_[i]; ++t, ++w)
        add_scaled(*w, row.x[i + 1] + t * dim_, dim_, row.y);
  }
  void backward(const RowGradient& row) const {
    float *w = row.scratch, *dw = row.scratch + total_;
    weights(row.x, w);
    size_t k = 0;
    for (size_t i = 0; i < lengths_.size(); ++i) {
      for (size_t t = 0; t < lengths_[i]; ++t, ++k) {
        add_scaled(w[k], row.dy, dim_, row.dx[i + 1] + t * dim_);
        dw[k] = dot_of(row.dy, row.x[i + 1] + t * dim_, dim_);
      }
    }
    if (softmax_) {
      add_softmax_gradient(w, dw, total_, row.dx[0]);
      return;
    }
    for (k = 0; k < total_; ++k) row.dx[0][k] += mask_ == 0 || row.x[mask_][k] != 0 ? dw[k] : 0.0F;
  }

 private:
  template <typename T>
  void weights(const T* const* x, T* w) const {
    const T* mask = mask_ == 0 ? nullptr : x[mask_];
    std::copy_n(x[0], total_, w);
    if (softmax_) {
      softmax_in_place(w, mask, total_);
    } else if (mask != nullptr) {
      for (size_t k = 0; k < total_; ++k) w[k] = mask[k] != 0 ? w[k] : T(0);
    }
  }

  bool softmax_;
  size_t dim_, mask_ = 0, total_ = 0;
  std::vector<size_t> lengths_;
};

}  // namespace flux
