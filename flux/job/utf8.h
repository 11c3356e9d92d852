// What a job's text may be made of: UTF-8 without control characters other than tab and line ends,
// and no more than kJobBytesMax. Pure.
#pragma once

#include <string_view>

#include "flux/base/utf8.h"
#include "flux/job/problems.h"

namespace flux {

bool is_control(char c);
// False, with a problem at the first bad byte, if the text is not acceptable.
bool check_text(std::string_view text, Problems* problems);

}  // namespace flux
