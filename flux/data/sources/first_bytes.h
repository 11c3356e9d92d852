// The first bytes of a file, by which find_packing() (packing.h) knows what it is: whether a text
// can be written as it is, so that it is read as that text again. Pure function.
#pragma once

#include <string_view>

namespace flux {

// Whether a file that begins so is read as the text that it is: no packing and nothing else begins
// with these bytes.
bool begins_as_text(std::string_view text);

}  // namespace flux
