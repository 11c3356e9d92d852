#include "flux/data/text/vw.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "flux/data/format_check.h"
#include "flux/data/text/formats.h"
#include "flux/data/text/line_words.h"

namespace flux {
namespace {

// The part of [begin, end) before the next bar.
std::string_view before_bar(const char* begin, const char* end) {
  const auto size = static_cast<size_t>(end - begin);
  const auto* bar = static_cast<const char*>(std::memchr(begin, '|', size));
  return {begin, bar == nullptr ? size : static_cast<size_t>(bar - begin)};
}

}  // namespace

std::optional<LineError> VwParser::parse(std::string_view line, LineRecord* out) const {
  line = without_return(line);
  shape_.begin(line.size(), out);
  const char* const end = line.data() + line.size();
  std::string_view part = before_bar(line.data(), end);
  if (part.size() == line.size())
    return LineError{line.size() + 1, "no '|'; the features of a line begin behind a bar"};
  if (auto wrong = read_head(part, out)) return wrong;
  while (part.data() + part.size() < end) {
    part = before_bar(part.data() + part.size() + 1, end);
    const auto offset = static_cast<size_t>(part.data() - line.data());
    LineWords words(part);
    Space space;
    const bool named = !part.empty() && !is_blank(part[0]);
    const std::string_view name = named ? words.next() : std::string_view();
    if (auto wrong = read_space(name, offset + 1, &space)) return wrong;
    for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
      const size_t column = offset + words.column_of(word);
      auto wrong =
          space.dense ? read_number(word, column, out) : read_feature(space, word, column, out);
      if (wrong) return wrong;
    }
  }
  return std::nullopt;
}

// LABEL, IMPORTANCE, TAG. A word that touches the bar is the tag, and so is one with a '.
std::optional<LineError> VwParser::read_head(std::string_view head, LineRecord* out) const {
  LineWords words(head);
  std::string_view found[3];
  size_t n = 0;
  std::string_view tag;
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    const bool touches = word.data() + word.size() == head.data() + head.size();
    if (!tag.empty() || (n == 3 && !touches))
      return LineError{words.column_of(word),
                       fmt::format("{} is one word too many; before the bar stand the label, the "
                                   "importance and a 'tag",
                                   shown_field(word))};
    if (word[0] == '\'' || touches)
      tag = word;
    else
      found[n++] = word;
  }
  if (n == 0)
    return LineError{1, tag.empty() ? "no label; a line begins with its label"
                                    : fmt::format("no label: {} is the tag, as it has no blank "
                                                  "behind it or begins with '",
                                                  shown_field(tag))};
  if (n == 3)
    return LineError{words.column_of(found[2]),
                     fmt::format("{} is a first prediction (base), which is not known here",
                                 shown_field(found[2]))};
  if (auto wrong = shape_.read_class(found[0], words.column_of(found[0]), out)) {
    wrong->what += "; a line begins with its label";
    return wrong;
  }
  if (n == 1) return std::nullopt;
  if (!shape_.weights())
    return LineError{words.column_of(found[1]),
                     "the example has an importance, but the job does not say data.weights: true"};
  return shape_.read_weight(found[1], words.column_of(found[1]), out);
}

std::string VwParser::name_of(std::string_view line) const {
  const std::string_view head = before_bar(line.data(), line.data() + line.size());
  LineWords words(head);
  std::string_view last;
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) last = word;
  if (last.empty()) return "";
  if (last[0] == '\'') return std::string(last.substr(1));
  const bool touches = last.data() + last.size() == head.data() + head.size();
  return touches ? std::string(last) : "";
}

std::optional<LineError> VwParser::read_space(std::string_view word, size_t column,
                                              Space* out) const {
  if (word.empty()) {
    if (shape_.slots().size() == 1) return std::nullopt;
    return LineError{column, fmt::format("a namespace without a name, but data.slots names {}",
                                         shape_.slots().size())};
  }
  const size_t mark = word.find(':');
  const std::string_view name = word.substr(0, mark);
  if (mark != std::string_view::npos && !parse_number(word.substr(mark + 1), &out->scale))
    return LineError{column + mark + 1,
                     fmt::format("the weight {} of namespace {} is not a number",
                                 shown_field(word.substr(mark + 1)), shown_field(name))};
  out->dense = name == "dense" && !shape_.dense().empty();
  if (out->dense) {
    if (out->scale == 1) return std::nullopt;
    return LineError{column, "the namespace 'dense' has no weight"};
  }
  const auto found = shape_.find(name);
  if (!found) return shape_.unknown(name, column);
  if (*found >= shape_.slots().size())
    return LineError{column, fmt::format("{} is a dense feature, no namespace; write it as |dense "
                                         "{}:NUMBER",
                                         shown_field(name), name)};
  out->slot = *found;
  return std::nullopt;
}

std::optional<LineError> VwParser::read_feature(const Space& space, std::string_view word,
                                                size_t column, LineRecord* out) const {
  const size_t mark = word.rfind(':');
  const std::string_view key = word.substr(0, mark);
  if (mark == std::string_view::npos)
    return shape_.read_weighted(space.slot, key, column, {}, space.scale, out);
  if (mark + 1 == word.size())
    return LineError{column + mark + 1,
                     fmt::format("{} ends where its value should be", shown_field(word))};
  return shape_.read_weighted(space.slot, key, column, word.substr(mark + 1), space.scale, out);
}

std::optional<LineError> VwParser::read_number(std::string_view word, size_t column,
                                               LineRecord* out) const {
  const size_t mark = word.find(':');
  const std::string_view name = word.substr(0, mark);
  const auto slots = static_cast<uint32_t>(shape_.slots().size());
  const auto found = shape_.find(name);
  if (!found || *found < slots) return shape_.unknown(name, column);
  if (mark == std::string_view::npos)
    return LineError{
        column + word.size(),
        fmt::format("dense feature {} has no number; write {}:NUMBER", shown_field(name), name)};
  return shape_.read_dense(*found - slots, word.substr(mark + 1), column + mark + 1, out);
}

Status check_vw(const DataOptions& options) {
  return check_declared(options,
                        {.minus_one_is_zero = true, .many_labels = false, .sessions = false});
}

Result<std::unique_ptr<const BlockFormat>> vw_lines(const DataOptions& options) {
  return line_format(options, std::make_unique<VwParser>(options));
}

}  // namespace flux
