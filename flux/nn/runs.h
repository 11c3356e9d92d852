// Runs: how an operator with the attribute `over` walks a value [B,T,d]: as `outer` x `inner` runs
// of `n` numbers that lie `inner` apart. Over features there are T runs of d neighbours, over
// positions d runs of T.
// Pure.
#pragma once

#include "flux/nn/row_operator.h"

namespace flux {

struct Runs {
  Runs(const Node& node, const Node& input) {
    positions = node.text_attr("over") == "positions";
    outer = positions ? 1 : input.length;
    n = positions ? input.length : input.dim();
    inner = positions ? input.dim() : 1;
  }
  size_t count() const { return outer * inner; }
  // Where run r begins; its k-th number is at begin(r) + k * inner.
  size_t begin(size_t r) const { return r / inner * n * inner + r % inner; }
  template <typename T>
  void read(const T* x, size_t r, T* run) const {
    const T* from = x + begin(r);
    for (size_t k = 0; k < n; ++k) run[k] = from[k * inner];
  }

  bool positions;
  size_t outer, n, inner;
};

// Checks the optional mask of such an operator: [B,n], 1 for what counts and 0 for what does not.
inline Status check_run_mask(const InferContext& context, size_t n) {
  if (context.inputs.size() < 2 || context.inputs[1]->width == n) return Status::ok();
  return context.fail(
      fmt::format("the mask must be [B,{}], as long as what is walked over: {}; got {}", n,
                  context.node.text_attr("over"), context.shapes()));
}

}  // namespace flux
