// The plain parser of a Criteo line: field by field, one rule after the other, no tricks. It is the
// oracle that the fast parser (criteo_line.h) is tested against, and it words the errors.
// A dense value is the double nearest to the decimal, rounded to float.
// Pure function; safe everywhere.
#pragma once

#include <optional>
#include <string_view>

#include "flux/data/criteo.h"
#include "flux/data/line_error.h"

namespace flux {

// Parses a line (without its '\n'; one '\r' at the end is ignored) into *out.
std::optional<LineError> reference_parse_line(std::string_view line, CriteoRecord* out);

}  // namespace flux
