#include "flux/data/decimal.h"

#include <charconv>
#include <cmath>
#include <system_error>

namespace flux {

bool parse_decimal(const char* begin, const char* end, float* out) {
  if (begin != end && *begin == '+') ++begin;
  if (begin == end || !((*begin >= '0' && *begin <= '9') || *begin == '-' || *begin == '.'))
    return false;  // from_chars would take inf and nan
  if (*begin == '-' && (begin + 1 == end || !((begin[1] >= '0' && begin[1] <= '9') ||
                                              begin[1] == '.')))
    return false;
  double value = 0;
  const auto [rest, failure] = std::from_chars(begin, end, value);
  if (failure != std::errc() || rest != end) return false;
  *out = static_cast<float>(value);
  return std::isfinite(*out);
}

}  // namespace flux
