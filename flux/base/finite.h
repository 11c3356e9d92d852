// Whether floats are numbers, at the speed of memory: the check of every gradient before a push.
// Pure; safe everywhere. Nothing fails.
#pragma once

#include <cstddef>
#include <string>

namespace flux {

// Index of the first NaN or infinity of x[0, n), or n if there is none.
size_t first_not_finite(const float* x, size_t n);

// "nan", "inf" or "-inf"; a number as it prints.
std::string float_text(double x);

}  // namespace flux
