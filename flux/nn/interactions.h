// What operators of interactions between slots share: their input is a sequence with one position
// per slot (embedding with combine: sequence, or a reshape).
#pragma once

#include "flux/nn/row_operator.h"

namespace flux {

inline Status check_slots(const InferContext& context) {
  if (context.inputs[0]->length > 1) return Status::ok();
  return context.fail(fmt::format(
      "the input must have one position per slot, [B,slots,dim], got {}; put a reshape with "
      "length: <slots> before it",
      context.shapes()));
}

// The sum over slots of x [length][dim].
template <typename T>
void sum_slots(const T* x, size_t length, size_t dim, T* sum) {
  std::fill_n(sum, dim, T(0));
  for (size_t s = 0; s < length; ++s) add_scaled(T(1), x + s * dim, dim, sum);
}

}  // namespace flux
