// For the tests of text formats: a line with the bytes behind it that a parser may read, and what a
// parser makes of it. Included by tests and fuzz targets only.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "flux/base/random.h"
#include "flux/data/text/line_parser.h"

namespace flux {

// In a buffer of exactly the size that the contract of LineParser promises.
class PaddedLine {
 public:
  explicit PaddedLine(std::string_view line, char behind = '\n') : text_(line), size_(line.size()) {
    text_ += behind;
    // What comes next looks like more of the line.
    while (text_.size() < size_ + LineParser::kSlack) text_ += "7:1 ";
    text_.resize(size_ + LineParser::kSlack);
    text_.shrink_to_fit();
  }
  std::string_view view() const { return {text_.data(), size_}; }

 private:
  std::string text_;
  size_t size_;
};

// "": the line is taken.
inline std::string refusal_of(const LineParser& parser, std::string_view line) {
  LineRecord record;
  const auto wrong = parser.parse(PaddedLine(line).view(), &record);
  return wrong ? fmt::format("{}: {}", wrong->column, wrong->what) : "";
}

// All that a record says, to be compared and shown.
inline std::string text_of(const LineRecord& r) {
  std::string out = fmt::format("w={} group={} ordered={}", r.weight, r.group, r.ordered);
  for (const float label : r.labels) out += fmt::format(" label={:a}", label);
  for (const float number : r.dense) out += fmt::format(" dense={:a}", number);
  for (const uint64_t slice : r.slices) out += fmt::format(" slice={}", slice);
  for (uint32_t i = 0; i < r.count; ++i)
    out += fmt::format(" {}:{}:{:a}", r.slots[i], r.keys[i], r.values[i]);
  return out;
}

// What a parser makes of a line: the record, or the refusal.
inline std::string outcome_of(const LineParser& parser, std::string_view line, LineRecord* record) {
  const PaddedLine padded(line);
  const auto wrong = parser.parse(padded.view(), record);
  return wrong ? fmt::format("{}: {}", wrong->column, wrong->what) : text_of(*record);
}

// A line with some bytes changed, cut, or repeated.
inline std::string bent_line(std::string line, std::string_view alphabet, Random* random) {
  for (uint64_t edits = random->below(3); edits > 0 && !line.empty(); --edits) {
    const size_t at = random->below(line.size());
    switch (random->below(4)) {
      case 0:
        line[at] = alphabet[random->below(alphabet.size())];
        break;
      case 1:
        line.insert(at, 1, alphabet[random->below(alphabet.size())]);
        break;
      case 2:
        line.erase(at, random->below(4));
        break;
      default:
        line.insert(at, line.substr(random->below(line.size()), random->below(12)));
    }
  }
  return line;
}

}  // namespace flux
