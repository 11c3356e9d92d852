#include "flux/data/plain_text.h"

#include <fmt/format.h>

#include "flux/base/utf8.h"

namespace flux {

std::optional<LineError> find_no_text(std::string_view line) {
  const size_t good = plain_text_bytes(line);
  if (good == line.size()) return std::nullopt;
  const auto byte = static_cast<unsigned char>(line[good]);
  if (byte == 0) return LineError{good + 1, "byte \\x00, which no text has; is this a text file?"};
  return LineError{good + 1,
                   fmt::format("byte \\x{:02x} is not UTF-8; if this is text, turn it into UTF-8 "
                               "(iconv), if not, take it out",
                               byte)};
}

}  // namespace flux
