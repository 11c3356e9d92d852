// Decimal text to float, for the fields that the vector path of the parser leaves over.
// Gives the double nearest to the decimal, rounded to float. Pure function.
#pragma once

namespace flux {

// Parses all of [begin, end): '-'? digits with an optional '.', optional exponent; empty is 0.
// False if it is something else or does not fit a float.
bool parse_decimal(const char* begin, const char* end, float* out);

}  // namespace flux
