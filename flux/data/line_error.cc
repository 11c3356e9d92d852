#include "flux/data/line_error.h"

#include <fmt/format.h>

namespace flux {

std::string shown_field(std::string_view field) {
  constexpr size_t kMax = 40;
  std::string out = "'";
  for (const char c : field.substr(0, kMax)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out + (field.size() > kMax ? "...'" : "'");
}

}  // namespace flux
