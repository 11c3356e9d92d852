// The plain parser of a Criteo line: field by field, one rule after the other, no tricks. It is the
// oracle that the fast parser (criteo_line.h) is tested against, and it words the errors.
// A dense value is the double nearest to the decimal, rounded to float.
// Pure function; safe everywhere.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "flux/data/criteo.h"

namespace flux {

struct LineError {
  size_t column = 1;  // byte in the line, from 1
  std::string what;   // what is wrong and what is allowed
};

// Parses a line (without its '\n'; one '\r' at the end is ignored) into *out.
std::optional<LineError> reference_parse_line(std::string_view line, CriteoRecord* out);

}  // namespace flux
