#include "flux/data/text/feasign.h"

#include <algorithm>

#include <fmt/format.h>

#include "flux/data/format_check.h"
#include "flux/data/text/formats.h"
#include "flux/data/text/line_words.h"

namespace flux {

std::optional<LineError> PlainFeasign::parse(std::string_view line, LineRecord* out) const {
  LineWords words(without_return(line));
  shape_.begin(line.size(), out);
  std::string_view word = words.next();
  if (word.empty()) return LineError{1, "an empty line; a line begins with its label"};
  if (auto wrong = read_labels(word, words.column_of(word), out)) return wrong;
  for (word = words.next(); !word.empty(); word = words.next()) {
    const size_t column = words.column_of(word);
    const size_t mark = word.find_first_of(":=");
    auto wrong = mark != std::string_view::npos && word[mark] == '='
                     ? read_note(word, column, out)
                     : read_feature(word, column, out);
    if (wrong) return wrong;
  }
  return std::nullopt;
}

std::optional<LineError> PlainFeasign::read_labels(std::string_view word, size_t column,
                                                   LineRecord* out) const {
  const size_t wanted = shape_.labels().size();
  size_t begin = 0;
  while (begin <= word.size()) {
    const size_t end = std::min(word.find(',', begin), word.size());
    if (auto wrong = shape_.read_label(word.substr(begin, end - begin), column + begin, out)) {
      wrong->what += fmt::format("; a line begins with {} label{}", wanted,
                                 wanted == 1 ? "" : "s, with commas between them");
      return wrong;
    }
    begin = end + 1;
  }
  const size_t found = out->labels.size();
  if (found == wanted) return std::nullopt;
  return LineError{column, fmt::format("{} label{}, but data.labels names {}", found,
                                       found == 1 ? "" : "s", wanted)};
}

std::optional<LineError> PlainFeasign::read_note(std::string_view word, size_t column,
                                                 LineRecord* out) const {
  const size_t mark = word.find('=');
  const std::string_view name = word.substr(0, mark), value = word.substr(mark + 1);
  const std::string_view marked = word.substr(0, mark + 1);
  if (name == "id") return LineShape::note_once(marked, column, &out->has_name);
  if (name == "sid") {
    if (auto wrong = LineShape::note_once(marked, column, &out->has_session)) return wrong;
    shape_.set_session(value, out);
    return std::nullopt;
  }
  if (name != "w")
    return LineError{column, fmt::format("{} is not known; w=, id= and sid= are, features are "
                                         "NAME:KEY",
                                         shown_field(marked))};
  if (!shape_.weights())
    return LineError{column,
                     "the example has a weight, but the job does not say data.weights: "
                     "true"};
  if (auto wrong = LineShape::note_once(marked, column, &out->has_weight)) return wrong;
  return shape_.read_weight(value, column + mark + 1, out);
}

std::optional<LineError> PlainFeasign::read_feature(std::string_view word, size_t column,
                                                    LineRecord* out) const {
  const size_t mark = word.find(':');
  if (mark == std::string_view::npos)
    return LineError{column,
                     fmt::format("{} is no feature; features are NAME:KEY", shown_field(word))};
  const std::string_view name = word.substr(0, mark), text = word.substr(mark + 1);
  const auto found = shape_.find(name);
  if (!found) return shape_.unknown(name, column);
  const auto slots = static_cast<uint32_t>(shape_.slots().size());
  if (*found >= slots) return shape_.read_dense(*found - slots, text, column + mark + 1, out);
  return shape_.read_item(*found, text, column + mark + 1, out);
}

std::string FeasignParser::name_of(std::string_view line) const {
  constexpr std::string_view kNote = "id=";
  LineWords words(without_return(line));
  words.next();  // the labels
  for (std::string_view word = words.next(); !word.empty(); word = words.next())
    if (word.starts_with(kNote)) return std::string(word.substr(kNote.size()));
  return "";
}

Status check_feasign(const DataOptions& options) {
  return check_declared(options, {});
}

Result<std::unique_ptr<const BlockFormat>> feasign_lines(const DataOptions& options) {
  return line_format(options, std::make_unique<FeasignParser>(options));
}

}  // namespace flux
