// Counting and finding newlines at memory speed. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace flux {

size_t count_newlines(const char* text, size_t size);
// Offset just behind the n-th newline (n >= 1) of the text, or size + 1 if there are fewer.
size_t after_newline(const char* text, size_t size, size_t n);
// Starts of all lines of a text: 0 and every offset behind a newline except the end of the text.
void line_starts(const char* text, size_t size, std::vector<uint32_t>* starts);

}  // namespace flux
