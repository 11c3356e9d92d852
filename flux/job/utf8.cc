#include "flux/job/utf8.h"

#include "flux/base/text.h"
#include "flux/job/yaml_document.h"

namespace flux {

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
