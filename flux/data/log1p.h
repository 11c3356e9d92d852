// log(1 + max(x, 0)) for whole arrays, in double inside, the same bits on every CPU (plain
// arithmetic only, no library call). Relative error below 1e-7. Pure.
#pragma once

#include <cstddef>

namespace flux {

void log1p_of_positive(float* values, size_t n);

}  // namespace flux
