// dot: the inner product of two values, position by position.
#include "flux/nn/similarity.h"

namespace flux {
namespace {

struct Dot {
  template <typename T>
  static T forward(const T* a, const T* b, size_t dim) {
    return dot_of(a, b, dim);
  }
  static void backward(const float* a, const float* b, size_t dim, float dy, float* da, float* db) {
    add_scaled(dy, b, dim, da);
    add_scaled(dy, a, dim, db);
  }
};

}  // namespace

OperatorDef operator_dot() {
  return similarity_operator<Dot>(
      "dot", "Inner product of [B,d] and [B,d]: [B,1]; or of each position, [B,T,1].");
}

}  // namespace flux
