// LineError: why a line of data is refused, and where in it.
// Plain values and pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace flux {

struct LineError {
  size_t column = 1;  // byte in the line, from 1
  std::string what;   // what is wrong and what is allowed
};

// A field in quotes as it may be shown on a terminal: bounded, without control characters.
std::string shown_field(std::string_view field);

}  // namespace flux
