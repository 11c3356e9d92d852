// UTF-8, as far as flux has to know it: where well-formed text ends.
// Pure functions.
#pragma once

#include <cstddef>
#include <string_view>

namespace flux {

// Length of the well-formed UTF-8 character at the front of `text` (1..4), or 0. `text` is not
// empty.
size_t utf8_length(std::string_view text);

// Bytes at the front of `text` that are well-formed UTF-8 without NUL: all of them, in text that
// people wrote.
size_t plain_text_bytes(std::string_view text);

}  // namespace flux
