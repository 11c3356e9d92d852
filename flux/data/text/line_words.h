// The words of a line, one after the other, with their columns: for parsers that go word by word.
// A plain value over a line that outlives it, with the slack of LineParser behind it.
#pragma once

#include <cstddef>
#include <string_view>

#include "flux/data/text/word_scan.h"

namespace flux {

class LineWords {
 public:
  explicit LineWords(std::string_view line) : line_(line) {}

  // The next word between blanks and tabs; empty at the end of the line.
  std::string_view next() {
    while (at_ < line_.size() && is_blank(line_[at_])) ++at_;
    const char* const begin = line_.data() + at_;
    const char* const end = word_end(begin, line_.data() + line_.size());
    at_ = static_cast<size_t>(end - line_.data());
    return {begin, static_cast<size_t>(end - begin)};
  }
  // Of a part of the line, from 1.
  size_t column_of(std::string_view part) const {
    return static_cast<size_t>(part.data() - line_.data()) + 1;
  }
  size_t end_column() const { return line_.size() + 1; }

 private:
  const std::string_view line_;
  size_t at_ = 0;
};

// Without the '\r' that a line of Windows ends with.
inline std::string_view without_return(std::string_view line) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

}  // namespace flux
