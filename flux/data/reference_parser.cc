#include "flux/data/reference_parser.h"

#include <cmath>
#include <cstdlib>
#include <string>

#include "flux/base/text.h"

namespace flux {
namespace {

bool parse_number(const std::string& field, float* out) {
  if (field.empty()) {
    *out = 0;
    return true;
  }
  if (field.find_first_not_of("0123456789.eE+-") != std::string::npos) return false;
  char* rest = nullptr;
  const double value = std::strtod(field.c_str(), &rest);
  *out = static_cast<float>(value);
  return *rest == '\0' && std::isfinite(*out);
}

bool parse_token(const std::string& field, uint64_t slot, uint64_t* out) {
  if (field.empty()) {
    *out = ((slot + 1) << 32) | (1ULL << 48);
    return true;
  }
  if (field.size() > 8) return false;
  if (field.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) return false;
  *out = ((slot + 1) << 32) | std::strtoul(field.c_str(), nullptr, 16);
  return true;
}

}  // namespace

bool reference_parse_criteo(std::string_view line, ReferenceRecord* out) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.find('\0') != std::string_view::npos) return false;
  const std::vector<std::string> fields = split(line, '\t');
  if (fields.size() != 40 || (fields[0] != "0" && fields[0] != "1")) return false;
  out->label = fields[0] == "1" ? 1.0F : 0.0F;
  out->dense.assign(13, 0);
  out->keys.assign(26, 0);
  for (size_t d = 0; d < 13; ++d)
    if (!parse_number(fields[1 + d], &out->dense[d])) return false;
  for (size_t s = 0; s < 26; ++s)
    if (!parse_token(fields[14 + s], s, &out->keys[s])) return false;
  return true;
}

}  // namespace flux
