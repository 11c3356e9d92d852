#include "flux/data/reference_parser.h"

#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace flux {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// nullptr, or what is wrong.
const char* parse_dense(std::string_view field, float* out) {
  *out = 0;
  if (field.empty()) return nullptr;
  constexpr const char* kExpected = "expected a decimal number such as 3, -1, 0.25 or 1e-3";
  const size_t first = field[0] == '-' ? 1 : 0;
  // Keeps out the words (nan, inf) that from_chars would take.
  if (first >= field.size() || !(is_digit(field[first]) || field[first] == '.')) return kExpected;
  double value = 0;
  const auto [end, problem] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (problem == std::errc::invalid_argument || end != field.data() + field.size())
    return kExpected;
  *out = static_cast<float>(value);
  if (problem == std::errc::result_out_of_range || !std::isfinite(*out))
    return "out of range, expected a number that a float can hold (up to 3.4e38)";
  return nullptr;
}

bool parse_token(std::string_view field, uint32_t slot, uint64_t* key) {
  if (field.empty()) {
    *key = criteo_missing_key(slot);
    return true;
  }
  if (field.size() > 8) return false;
  uint32_t token = 0;
  const auto [end, problem] = std::from_chars(field.data(), field.data() + field.size(), token, 16);
  *key = criteo_key(slot, token);
  return problem == std::errc() && end == field.data() + field.size();
}

}  // namespace

std::optional<LineError> reference_parse_line(std::string_view line, CriteoRecord* out) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (line.empty()) return LineError{1, "blank line; every line must be a record, remove it"};
  if (line.size() > kCriteoLineBytesMax)
    return LineError{1, fmt::format("line of {} bytes; at most {} are allowed", line.size(),
                                    kCriteoLineBytesMax)};
  std::array<size_t, kCriteoFields + 1> begin = {};  // of each field; behind the last: the end + 1
  size_t fields = 1;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\t') continue;
    if (fields <= kCriteoFields) begin[fields] = i + 1;
    ++fields;
  }
  if (fields != kCriteoFields)
    return LineError{fields > kCriteoFields ? begin[kCriteoFields] + 1 : line.size() + 1,
                     fmt::format("{} fields; expected {} between tabs: label, I1..I{}, C1..C{}",
                                 fields, kCriteoFields, kCriteoDense, kCriteoSlots)};
  begin[kCriteoFields] = line.size() + 1;
  const auto field = [&](size_t i) { return line.substr(begin[i], begin[i + 1] - begin[i] - 1); };

  if (field(0) != "0" && field(0) != "1")
    return LineError{1, fmt::format("label is {}; expected 0 or 1", shown_field(field(0)))};
  out->label = field(0) == "1" ? 1.0F : 0.0F;
  for (uint32_t i = 0; i < kCriteoDense; ++i)
    if (const char* wrong = parse_dense(field(1 + i), &out->dense[i]))
      return LineError{begin[1 + i] + 1, fmt::format("I{} is {}; {}, or nothing when it is missing",
                                                     i + 1, shown_field(field(1 + i)), wrong)};
  for (uint32_t s = 0; s < kCriteoSlots; ++s) {
    const size_t f = 1 + kCriteoDense + s;
    if (!parse_token(field(f), s, &out->keys[s]))
      return LineError{begin[f] + 1,
                       fmt::format("C{} is {}; expected 1 to 8 hexadecimal digits, or nothing when "
                                   "it is missing",
                                   s + 1, shown_field(field(f)))};
  }
  return std::nullopt;
}

}  // namespace flux
