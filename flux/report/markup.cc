#include "flux/report/markup.h"

#include <fmt/format.h>

namespace flux {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '<' || c == '>' || c == '&' || c == '\'' || c == '"') {
      out += fmt::format("&#{};", static_cast<int>(c));
    } else if ((byte < 32 && c != '\n' && c != '\t') || byte == 127) {
      out += '?';
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace flux
