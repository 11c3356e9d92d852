// reduction_operator<F>: a sequence or vector reduced along its features ([B,T,d] to [B,T,1]) or
// its positions ([B,T,d] to [B,d]), of all entries or of those that a mask names.
//
// F has two static functions over one run of n numbers and its mask (null: all count):
//   template <typename T> T forward(const T* x, const T* mask, size_t n);
//   void backward(const float* x, const float* mask, size_t n, float dy, float* dx);  // writes dx
#pragma once

#include "flux/nn/runs.h"

namespace flux {

template <typename F>
class Reduction : public RowFunction {
 public:
  Reduction(const Graph& graph, const Node& node)
      : runs_(node, input_of(graph, node, 0)), masked_(node.inputs.size() > 1) {}
  size_t scratch() const { return 2 * runs_.n; }

  template <typename T>
  void forward(const Row<T>& row) const {
    for (size_t r = 0; r < runs_.count(); ++r) {
      const T* x = run_of(row.x[0], r, row.scratch);
      row.y[r] = F::template forward<T>(x, masked_ ? row.x[1] : nullptr, runs_.n);
    }
  }
  void backward(const RowGradient& row) const {
    float* dx = row.scratch + runs_.n;
    for (size_t r = 0; r < runs_.count(); ++r) {
      const float* x = run_of(row.x[0], r, row.scratch);
      F::backward(x, masked_ ? row.x[1] : nullptr, runs_.n, row.dy[r], dx);
      float* to = row.dx[0] + runs_.begin(r);
      for (size_t k = 0; k < runs_.n; ++k) to[k * runs_.inner] += dx[k];
    }
  }

 private:
  // Run r side by side: as it lies, or copied.
  template <typename T>
  const T* run_of(const T* x, size_t r, T* scratch) const {
    if (runs_.inner == 1) return x + runs_.begin(r);
    runs_.read(x, r, scratch);
    return scratch;
  }

  Runs runs_;
  bool masked_;
};

inline Status infer_reduction(InferContext& context) {
  const Runs runs(context.node, *context.inputs[0]);
  FLUX_RETURN_IF_ERROR(check_run_mask(context, runs.n));
  context.node.length = static_cast<uint32_t>(runs.outer);
  context.node.width = static_cast<uint32_t>(runs.count());
  return Status::ok();
}

template <typename F>
OperatorDef reduction_operator(const char* name, const char* doc) {
  return row_operator<Reduction<F>>(name, doc, 1, 2, infer_reduction, {over_attribute()});
}

}  // namespace flux
