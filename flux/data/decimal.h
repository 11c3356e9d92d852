// Decimal numbers from text, without locale. parse_decimal() takes what people write in data files
// ([-+]digits[.digits][e[-+]digits]) and rounds as strtod and then to float; no hex, inf or nan.
#pragma once

namespace flux {

// Parses all of [begin, end). False if that is not a finite decimal number.
bool parse_decimal(const char* begin, const char* end, float* out);

}  // namespace flux
