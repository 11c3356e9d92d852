// How the bytes of a fuzzer become a line of a text format: the first byte chooses the job, the
// rest up to the first newline is the line. Included by the fuzz targets of line parsers. Pure but
// for expect(), which ends the program where something does not hold.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "flux/data/text/test_lines.h"

namespace flux {

inline void expect(bool true_thing) {
  if (!true_thing) __builtin_trap();
}

inline std::string line_of(const uint8_t* data, size_t size) {
  std::string line(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (const size_t end = line.find('\n'); end != std::string::npos) line.resize(end);
  return line;
}

// What holds of every parser: a refusal points into the line; a record is what the job declares, in
// numbers that are finite; the same line gives the same again, whatever came before it.
inline std::optional<LineError> check_line(const LineParser& parser, const DataOptions& options,
                                           const std::string& line, LineRecord* record) {
  const PaddedLine padded(line);
  const auto wrong = parser.parse(padded.view(), record);
  if (wrong) {
    expect(wrong->column >= 1 && wrong->column <= line.size() + 1 && !wrong->what.empty());
    return wrong;
  }
  expect(record->labels.size() == options.labels.size());
  expect(record->dense.size() == options.dense.size());
  for (const float label : record->labels) expect(std::isfinite(label));
  for (const float number : record->dense) expect(std::isfinite(number));
  expect(record->weight >= 0 && std::isfinite(record->weight));
  for (const float value : record->line_values()) expect(std::isfinite(value));
  for (const uint32_t slot : record->line_slots()) expect(slot < options.slots.size());
  const std::string first = text_of(*record);
  expect(!parser.parse(PaddedLine(line, '\0').view(), record) && text_of(*record) == first);
  return wrong;
}

// And what a second parser made of the line is what `parser` makes of it; none: it refused it.
inline void check_same(const LineParser& parser, const DataOptions& options,
                       const std::string& line, const std::optional<std::string>& plain) {
  LineRecord record;
  const bool refused = check_line(parser, options, line, &record).has_value();
  expect(refused == !plain.has_value());
  if (!refused) expect(text_of(record) == *plain);
}

}  // namespace flux
