// The value of a row that nobody has pushed to yet: a function of (key, seed) alone, so that it
// need not be stored, and every replica, reader and resumed run sees the same bits.
// Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "flux/base/hash.h"

namespace flux {

struct InitialValue {
  float scale;  // 0 for rows that start at zero
  uint64_t seed;

  void fill(uint64_t key, float* weights, size_t dim) const {
    if (scale == 0.0F) {
      for (size_t i = 0; i < dim; ++i) weights[i] = 0.0F;
      return;
    }
    // 2 u - 1 is exact: u has 24 bits.
    for (size_t i = 0; i < dim; ++i) {
      weights[i] = (2.0F * hash_uniform(key, seed, i) - 1.0F) * scale;
    }
  }
};

}  // namespace flux
