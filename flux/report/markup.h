// Small pieces of HTML and SVG: text that must stay text.
// Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace flux {

// For element content and quoted attributes. Control characters, which XML forbids, become '?'.
std::string escaped(std::string_view text);

}  // namespace flux
