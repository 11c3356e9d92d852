#include "flux/data/decimal.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <system_error>

namespace flux {
namespace {

constexpr double kPow10[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                             1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

struct Digits {
  uint64_t mantissa = 0;  // of the significant digits, while there are at most 19
  int significant = 0;
  int count = 0;
  int exponent = 0;  // of ten
};

const char* take_digits(const char* p, const char* end, int exponent_step, Digits* d) {
  for (; p != end && is_digit(*p); ++p) {
    ++d->count;
    d->exponent += exponent_step;
    if (*p != '0' || d->significant > 0) ++d->significant;
    if (d->significant <= 19) d->mantissa = d->mantissa * 10 + static_cast<uint64_t>(*p - '0');
  }
  return p;
}

// False if the text after 'e' is no exponent.
bool take_exponent(const char* p, const char* end, Digits* d) {
  bool negative = false;
  if (p != end && (*p == '-' || *p == '+')) negative = *p++ == '-';
  if (p == end) return false;
  int value = 0;
  for (; p != end && is_digit(*p); ++p)
    if (value < 100000) value = value * 10 + (*p - '0');
  d->exponent += negative ? -value : value;
  return p == end;
}

}  // namespace

bool parse_decimal(const char* begin, const char* end, float* out) {
  *out = 0;
  if (begin == end) return true;
  const bool negative = *begin == '-';
  const char* p = begin + (negative ? 1 : 0);
  Digits d;
  p = take_digits(p, end, 0, &d);
  if (p != end && *p == '.') p = take_digits(p + 1, end, -1, &d);
  if (d.count == 0) return false;
  if (p != end && (*p == 'e' || *p == 'E')) {
    if (!take_exponent(p + 1, end, &d)) return false;
  } else if (p != end) {
    return false;
  }
  double value = 0;
  if (d.significant <= 19 && d.mantissa <= (1ULL << 53) && d.exponent >= -22 && d.exponent <= 22) {
    // Both operands are exact, so the one rounding of the division or product is the right one.
    value = static_cast<double>(d.mantissa);
    value = d.exponent < 0 ? value / kPow10[-d.exponent] : value * kPow10[d.exponent];
    if (negative) value = -value;
  } else {
    const auto [last, problem] = std::from_chars(begin, end, value);
    if (problem != std::errc() || last != end) return false;
  }
  *out = static_cast<float>(value);
  return std::isfinite(*out);
}

}  // namespace flux
