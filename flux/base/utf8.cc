#include "flux/base/utf8.h"

#include <cstdint>
#include <cstring>

namespace flux {
namespace {

// Smallest code point that needs a sequence of this length: shorter is an overlong form.
constexpr uint32_t kSmallest[5] = {0, 0, 0x80, 0x800, 0x10000};

// Whether one of eight bytes is NUL or not ASCII; may say so of others only behind such a one.
bool has_odd_byte(uint64_t eight) {
  constexpr uint64_t kOnes = 0x0101010101010101, kHigh = 0x8080808080808080;
  return ((eight | (eight - kOnes)) & kHigh) != 0;
}

}  // namespace

size_t utf8_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC0 || first > 0xF7 || text.size() < length) return 0;
  uint32_t code = first & (0xFFU >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if ((c & 0xC0U) != 0x80U) return 0;
    code = code << 6U | (c & 0x3FU);
  }
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return code < kSmallest[length] || code > 0x10FFFF || surrogate ? 0 : length;
}

size_t plain_text_bytes(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    uint64_t eight = 0;
    if (at + sizeof eight <= text.size()) {
      std::memcpy(&eight, text.data() + at, sizeof eight);
      if (!has_odd_byte(eight)) {
        at += sizeof eight;
        continue;
      }
    }
    const size_t length = text[at] == '\0' ? 0 : utf8_length(text.substr(at));
    if (length == 0) break;
    at += length;
  }
  return at;
}

}  // namespace flux
