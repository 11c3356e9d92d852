// What a job's text may be made of: UTF-8 without control characters other than tab and line ends,
// and no more than kJobBytesMax. Pure.
#pragma once

#include <string_view>

#include "flux/job/problems.h"

namespace flux {

// Length of the well-formed UTF-8 character at the front of `text` (1..4), or 0.
size_t utf8_length(std::string_view text);
bool is_control(char c);
// False, with a problem at the first bad byte, if the text is not acceptable.
bool check_text(std::string_view text, Problems* problems);

}  // namespace flux
