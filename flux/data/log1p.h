// log(1 + max(x, 0)) of many floats, the dense transform. Made of IEEE additions, multiplications
// and divisions only, so that every CPU gives the same bits, which the C library does not promise.
// Relative error below 4e-7. Pure function.
#pragma once

#include <span>

namespace flux {

// In place; values must be finite.
void log1p_relu(std::span<float> values);

}  // namespace flux
