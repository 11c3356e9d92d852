// The fast parser of a Criteo line: tabs by vector compare, then four fields at a time. Regular
// decimals (at most 8 bytes, no exponent) and all tokens go through vectors; a longer decimal costs
// a scalar parse of that field. Results are those of reference_parser.h, bit for bit.
// Pure function; safe everywhere.
#pragma once

#include <cstddef>

#include "flux/data/criteo.h"

namespace flux {

// Bytes after the end of a line that must be readable (their contents do not matter).
constexpr size_t kCriteoSlack = 64;

// Parses text[0, size), a line without '\n', at most kCriteoLineBytesMax long. False if the line is
// refused; reference_parse_line() then says why.
bool parse_criteo_line(const char* text, size_t size, CriteoRecord* out);

}  // namespace flux
