// cosine: the cosine of the angle between two values, position by position; a vector shorter than
// 1e-6 counts as that long.
#include <cmath>

#include "flux/nn/similarity.h"

namespace flux {
namespace {

struct Cosine {
  template <typename T>
  static T size_of(const T* x, size_t dim) {
    return std::max(std::sqrt(dot_of(x, x, dim)), T(1e-6));
  }
  template <typename T>
  static T forward(const T* a, const T* b, size_t dim) {
    return dot_of(a, b, dim) / (size_of(a, dim) * size_of(b, dim));
  }
  static void backward(const float* a, const float* b, size_t dim, float dy, float* da, float* db) {
    const float size_a = size_of(a, dim), size_b = size_of(b, dim);
    const float scale = dy / (size_a * size_b), y = forward(a, b, dim);
    add_scaled(scale, b, dim, da);
    add_scaled(-dy * y / (size_a * size_a), a, dim, da);
    add_scaled(scale, a, dim, db);
    add_scaled(-dy * y / (size_b * size_b), b, dim, db);
  }
};

}  // namespace

OperatorDef operator_cosine() {
  return similarity_operator<Cosine>(
      "cosine", "Cosine of [B,d] and [B,d]: [B,1]; or of each position, [B,T,1].");
}

}  // namespace flux
