// Problems: everything wrong with one job file, gathered so that a person sees it all at once.
//
// Each problem has a place (in the file, or in a --set) and becomes a block of lines: the place and
// the message, the source line with a caret, and a hint. Columns are shown in characters; inside
// they are bytes, as yaml-cpp counts them.
// Threads: none; one per parse. Nothing here fails.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "flux/base/status.h"

namespace flux {

// Where a value or a field's name was written.
struct Origin {
  uint32_t line = 1;        // from 1
  uint32_t column = 1;      // bytes, from 1
  uint32_t length = 1;      // bytes under the caret
  int override_index = -1;  // of the --set that wrote it, or -1 for the file
};

class Problems {
 public:
  Problems(std::string path, std::string_view text);

  // What to print before a problem of override i: "--set a.b=v".
  void name_overrides(std::vector<std::string> labels) { override_labels_ = std::move(labels); }
  void add(const Origin& origin, std::string message, std::string hint = "");
  bool empty() const { return problems_.empty(); }
  // "file:line:col", or the label of the override.
  std::string place(const Origin& origin) const;
  std::string_view line(uint32_t number) const;  // from 1
  size_t line_count() const { return lines_.size(); }
  // ok, or one kInvalid with at most kShownMax blocks in the order of the file, without repeats.
  Status to_status() const;

  static constexpr size_t kShownMax = 20;

 private:
  struct Problem {
    Origin origin;
    std::string message;
    std::string hint;
  };
  std::string block(const Problem& problem) const;
  std::string excerpt(const Origin& origin) const;

  std::string path_;
  std::vector<std::string_view> lines_;  // of the text given, which must outlive this
  std::vector<std::string> override_labels_;
  std::vector<Problem> problems_;
};

// Text of a person, cut to a length that fits into a message.
std::string shorten(std::string_view text);

}  // namespace flux
