// equal: 1 where a == b, else 0; no gradient passes.
#include "flux/nn/comparison.h"

namespace flux {
namespace {

struct Equal {
  template <typename T>
  static bool holds(T a, T b) {
    return a == b;
  }
};

}  // namespace

OperatorDef operator_equal() {
  return comparison_operator<Equal>("equal",
                                    "1 where a == b, else 0; b is the second input or 'value'.");
}

}  // namespace flux
