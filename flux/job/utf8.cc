#include "flux/job/utf8.h"

#include "flux/base/text.h"
#include "flux/job/yaml_document.h"

namespace flux {
namespace {

// Smallest code point that needs a sequence of this length: shorter is an overlong form.
constexpr uint32_t kSmallest[5] = {0, 0, 0x80, 0x800, 0x10000};

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

bool is_control(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F;
}

bool check_text(std::string_view text, Problems* problems) {
  if (text.size() > kJobBytesMax) {
    problems->add({}, fmt::format("{} is too large for a job file", human_bytes(text.size())),
                  fmt::format("at most {} are read", human_bytes(kJobBytesMax)));
    return false;
  }
  Origin at;
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_length(text.substr(i));
    if (length == 0 || is_control(text[i])) {
      const auto byte = static_cast<unsigned char>(text[i]);
      problems->add(at,
                    length == 0 ? fmt::format("byte 0x{:02x} is not valid UTF-8", byte)
                                : fmt::format("control character 0x{:02x}", byte),
                    "save the file as UTF-8 text");
      return false;
    }
    at.column += static_cast<uint32_t>(length);
    if (text[i] == '\n') {
      ++at.line;
      at.column = 1;
    }
    i += length;
  }
  return true;
}

}  // namespace flux
