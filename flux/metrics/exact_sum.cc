#include "flux/metrics/exact_sum.h"

#include <cmath>

#include "flux/base/check.h"

namespace flux {
namespace {

constexpr int kBits = 32;
constexpr int kLowest = -1152;           // power of two of the first digit
constexpr uint32_t kAddsMax = 1U << 30;  // below 2^63 / 2^32 with room for merges
constexpr int64_t kBase = int64_t{1} << kBits;

}  // namespace

void ExactSum::add(double value) {
  FLUX_CHECK(std::isfinite(value), "a sum of {}", value);
  if (value == 0) return;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);
  const auto mantissa = static_cast<uint64_t>(std::ldexp(fraction, 53));
  const int at = exponent - 53 - kLowest;
  const auto wide = static_cast<unsigned __int128>(mantissa) << (at % kBits);
  const int64_t sign = value < 0 ? -1 : 1;
  const auto first = static_cast<size_t>(at / kBits);
  for (size_t i = 0; i < 3; ++i)
    digits_[first + i] += sign * static_cast<int64_t>(static_cast<uint32_t>(wide >> (i * kBits)));
  if (++added_ >= kAddsMax) {
    carry(&digits_);
    added_ = 0;
  }
}

void ExactSum::carry(Digits* digits) {
  int64_t over = 0;
  for (size_t i = 0; i + 1 < kDigits; ++i) {
    const int64_t digit = (*digits)[i] + over;
    over = digit >> kBits;  // rounds down, so that the rest is not negative
    (*digits)[i] = digit - over * kBase;
  }
  digits->back() += over;
}

void ExactSum::merge(const ExactSum& other) {
  Digits theirs = other.digits_;
  carry(&theirs);
  for (size_t i = 0; i < kDigits; ++i) digits_[i] += theirs[i];
  carry(&digits_);
  added_ = 0;
}

bool ExactSum::split(Digits* digits) const {
  *digits = digits_;
  carry(digits);
  const bool negative = digits->back() < 0;
  if (negative) {
    for (int64_t& digit : *digits) digit = -digit;
    carry(digits);
  }
  return negative;
}

void ExactSum::put(ByteWriter* out) const {
  Digits d;
  const bool negative = split(&d);
  size_t first = 0, end = kDigits - 1;  // the last is for sums beyond every double
  while (end > 0 && d[end - 1] == 0) --end;
  while (first < end && d[first] == 0) ++first;
  out->put(static_cast<uint8_t>(negative ? 1 : 0));
  out->put(static_cast<uint8_t>(end == 0 ? 0 : first));
  out->put(static_cast<uint8_t>(end - first));
  for (size_t i = first; i < end; ++i) out->put(static_cast<uint32_t>(d[i]));
}

bool ExactSum::get(ByteReader* in) {
  const bool negative = in->get<uint8_t>() != 0;
  const size_t first = in->get<uint8_t>();
  const size_t n = in->get<uint8_t>();
  if (!in->ok() || first + n >= kDigits) return false;
  digits_ = {};
  added_ = 0;
  for (size_t i = first; i < first + n; ++i) {
    const auto digit = static_cast<int64_t>(in->get<uint32_t>());
    digits_[i] = negative ? -digit : digit;
  }
  return in->ok();
}

double ExactSum::value() const {
  Digits d;
  const bool negative = split(&d);
  size_t top = kDigits;
  while (top > 0 && d[top - 1] == 0) --top;
  if (top == 0) return 0;
  // At least 65 bits, the last of which says whether anything lies below: one rounding, the right
  // one. The first digits are never used, so three below the top always exist.
  unsigned __int128 bits = 0;
  for (size_t i = 0; i < 3; ++i)
    bits = (bits << kBits) | static_cast<uint64_t>(top > i ? d[top - 1 - i] : 0);
  for (size_t i = 3; i < top; ++i)
    if (d[top - 1 - i] != 0) bits |= 1;
  const double size =
      std::ldexp(static_cast<double>(bits), kLowest + kBits * (static_cast<int>(top) - 3));
  return negative ? -size : size;
}

}  // namespace flux
