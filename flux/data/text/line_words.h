// The words of a line, one after the other, with their columns: for parsers that go word by word.
#pragma once

#include <cstddef>
#include <string_view>

namespace flux {

class LineWords {
 public:
  explicit LineWords(std::string_view line) : line_(line) {}

  // The next word between blanks and tabs; empty at the end of the line.
  std::string_view next() {
    while (at_ < line_.size() && is_blank(line_[at_])) ++at_;
    const size_t begin = at_;
    while (at_ < line_.size() && !is_blank(line_[at_])) ++at_;
    return line_.substr(begin, at_ - begin);
  }
  // Of a part of the line, from 1.
  size_t column_of(std::string_view part) const {
    return static_cast<size_t>(part.data() - line_.data()) + 1;
  }
  size_t end_column() const { return line_.size() + 1; }

 private:
  static bool is_blank(char c) { return c == ' ' || c == '\t'; }

  const std::string_view line_;
  size_t at_ = 0;
};

// Without the '\r' that a line of Windows ends with.
inline std::string_view without_return(std::string_view line) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

}  // namespace flux
