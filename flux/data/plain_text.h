// What text that is words may be made of: UTF-8 without NUL; so that others can read the vectors of
// words, and a file that is no text is named as such. Pure function.
#pragma once

#include <optional>
#include <string_view>

#include "flux/data/line_error.h"

namespace flux {

// Where a line has its first byte that is none, and what to do.
std::optional<LineError> find_no_text(std::string_view line);

}  // namespace flux
