// Newlines in memory, at the speed of memory: counting them, finding the n-th, listing line starts.
// Pure functions; safe everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace flux {

size_t count_newlines(const char* text, size_t size);

// Position of the n-th newline (from 0) of text[0, size), or `size` if there are not so many.
size_t find_newline(const char* text, size_t size, size_t n);

// Writes the begin of every line of text[0, size) to begins[0 ..], and one past the last line's
// newline (size + 1 if it has none) behind them. Returns the number of lines, or lines_max + 1 as
// soon as there are more; begins has room for lines_max + 1.
size_t index_lines(const char* text, uint32_t size, size_t lines_max, uint32_t* begins);

// What some editors write at the begin of UTF-8 text; it is no part of the first line.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
// 3 if the text begins with it, else 0.
inline size_t byte_order_mark_bytes(std::string_view text) {
  return text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
}

}  // namespace flux
