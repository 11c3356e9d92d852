#include "flux/data/criteo.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "flux/data/decimal.h"

namespace flux {
namespace {

constexpr uint64_t kOnes = 0x0101010101010101ULL;
constexpr uint64_t kHighs = 0x8080808080808080ULL;
// 10^-k as a divisor.
constexpr double kTen[8] = {1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7};

uint64_t load8(const char* p) {
  uint64_t x;
  std::memcpy(&x, p, sizeof x);
  return x;
}
// High bit of each byte that is `c`; exact up to and including the first such byte.
uint64_t find_byte(uint64_t x, char c) {
  const uint64_t t = x ^ (kOnes * static_cast<unsigned char>(c));
  return (t - kOnes) & ~t & kHighs;
}
bool all_digits(uint64_t x) {
  constexpr uint64_t kUpper = 0xf0f0f0f0f0f0f0f0ULL;
  return ((x & kUpper) | (((x + 0x0606060606060606ULL) & kUpper) >> 4)) == 0x3333333333333333ULL;
}
// High bit of each byte that is >= c, or <= c; all bytes and c below 128.
uint64_t at_least(uint64_t x, char c) {
  return ((x | kHighs) - kOnes * static_cast<unsigned char>(c)) & kHighs;
}
uint64_t at_most(uint64_t x, char c) {
  return (((kOnes * static_cast<unsigned char>(c)) | kHighs) - x) & kHighs;
}
// Eight ASCII digits, the first one in the lowest byte.
uint32_t eight_digits(uint64_t x) {
  x -= 0x3030303030303030ULL;
  x = x * 10 + (x >> 8);
  return static_cast<uint32_t>((((x & 0x000000ff000000ffULL) * 0x000f424000000064ULL) +
                                (((x >> 16) & 0x000000ff000000ffULL) * 0x0000271000000001ULL)) >>
                               32);
}

// A field of at most 7 bytes made of digits and at most one point, ended by a tab within 8 bytes.
// Returns its length, or -1 if it is of another form.
int short_number(const char* p, float* out) {
  const uint64_t x = load8(p);
  const uint64_t tabs = find_byte(x, '\t');
  if (tabs == 0) return -1;
  const auto bits = static_cast<uint32_t>(std::countr_zero(tabs)) & ~7U;  // 8 * length
  if (bits == 0) {
    *out = 0;
    return 0;
  }
  const uint64_t field = x & ((1ULL << bits) - 1);
  const uint64_t points = find_byte(field, '.');
  uint64_t digits = field;
  uint32_t digit_bits = bits;
  uint32_t decimals = 0;
  if (points != 0) {
    const auto at = static_cast<uint32_t>(std::countr_zero(points)) & ~7U;
    const uint64_t before = (1ULL << at) - 1;
    digits = (field & before) | ((field >> 8) & ~before);
    digit_bits = bits - 8;
    decimals = (bits - at) / 8 - 1;
  }
  if (digit_bits == 0) return -1;  // only a point
  const uint32_t shift = 64 - digit_bits;
  const uint64_t padded = (digits << shift) | (0x3030303030303030ULL >> digit_bits);
  if (!all_digits(padded)) return -1;
  *out = static_cast<float>(static_cast<double>(eight_digits(padded)) / kTen[decimals]);
  return static_cast<int>(bits / 8);
}

// Eight hex digits to their value; false if one is none.
bool eight_hex(const char* p, uint32_t* out) {
  const uint64_t x = load8(p);
  if ((x & kHighs) != 0) return false;
  const uint64_t lower = x | 0x2020202020202020ULL;
  const uint64_t good = (at_least(x, '0') & at_most(x, '9')) |
                        (at_least(lower, 'a') & at_most(lower, 'f'));
  if (good != kHighs) return false;
  const uint64_t nibbles = (x & 0x0f0f0f0f0f0f0f0fULL) + ((x >> 6) & kOnes) * 9;
  *out = static_cast<uint32_t>(_pext_u64(__builtin_bswap64(nibbles), 0x0f0f0f0f0f0f0f0fULL));
  return true;
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// A token of any legal length that ends at `end`.
bool any_token(const char* p, const char* end, uint32_t slot, uint64_t* key) {
  if (p == end) {
    *key = criteo_missing_key(slot);
    return true;
  }
  if (end - p > 8) return false;
  uint32_t token = 0;
  for (; p != end; ++p) {
    const int value = hex_value(*p);
    if (value < 0) return false;
    token = (token << 4) | static_cast<uint32_t>(value);
  }
  *key = criteo_key(slot, token);
  return true;
}

const char* field_end(const char* p, const char* end) {
  const void* tab = std::memchr(p, '\t', static_cast<size_t>(end - p));
  return tab != nullptr ? static_cast<const char*>(tab) : end;
}

}  // namespace

bool parse_criteo_line(const char* line, const char* end, float* label, float* dense,
                       uint64_t* keys) {
  if (end != line && end[-1] == '\r') --end;
  const char* p = line;
  if (end - p < 2 || (*p != '0' && *p != '1') || p[1] != '\t') return false;
  *label = *p == '1' ? 1.0F : 0.0F;
  p += 2;
  for (uint32_t d = 0; d < kCriteoDense; ++d) {
    // `p` may stand at `end` here; the padding behind makes the load legal, and the comparison
    // below refuses a tab that belongs to the next line.
    const int length = short_number(p, dense + d);
    if (length >= 0 && p + length < end) {
      p += length + 1;
      continue;
    }
    if (p > end) return false;
    const char* stop = field_end(p, end);
    if (stop == end) return false;
    if (stop == p) {
      dense[d] = 0;
    } else if (!parse_decimal(p, stop, dense + d)) {
      return false;
    }
    p = stop + 1;
  }
  uint64_t unused;
  for (uint32_t s = 0; s < kCriteoSlots; ++s) {
    uint64_t* key = keys != nullptr ? keys + s : &unused;
    const bool last = s + 1 == kCriteoSlots;
    uint32_t token;
    if (end - p >= 8 && (last ? p + 8 == end : p[8] == '\t') && eight_hex(p, &token)) {
      *key = criteo_key(s, token);
      p += 9;
      continue;
    }
    if (p > end) return false;
    const char* stop = field_end(p, end);
    if ((stop == end) != last) return false;
    if (!any_token(p, stop, s, key)) return false;
    p = stop + 1;
  }
  return true;
}

LineProblem find_criteo_problem(const char* line, const char* end) {
  if (end != line && end[-1] == '\r') --end;
  if (line == end) return {1, "blank line; every line must be a record"};
  uint32_t fields = 1;
  for (const char* p = line; p != end; ++p) fields += *p == '\t' ? 1 : 0;
  constexpr uint32_t kFields = 1 + kCriteoDense + kCriteoSlots;
  const char* p = line;
  for (uint32_t f = 0; f < fields && f < kFields; ++f) {
    const char* stop = field_end(p, end);
    const auto column = static_cast<uint32_t>(p - line) + 1;
    const std::string text(p, std::min<size_t>(static_cast<size_t>(stop - p), 40));
    float number;
    uint64_t key;
    if (f == 0 && text != "0" && text != "1")
      return {column, "label '" + text + "' is neither 0 nor 1"};
    if (f >= 1 && f <= kCriteoDense && stop != p && !parse_decimal(p, stop, &number))
      return {column, "field I" + std::to_string(f) + " '" + text +
                          "' is not a finite decimal number (empty means missing)"};
    if (f > kCriteoDense && !any_token(p, stop, f - kCriteoDense - 1, &key))
      return {column, "field C" + std::to_string(f - kCriteoDense) + " '" + text +
                          "' is not 1 to 8 hexadecimal digits (empty means missing)"};
    p = stop + 1;
  }
  return {1, std::to_string(fields) + " fields, expected 40: label, 13 numbers, 26 tokens, "
                                      "separated by tabs"};
}

}  // namespace flux
