#include "flux/data/text/libsvm.h"

#include <algorithm>

#include <fmt/format.h>

#include "flux/data/format_check.h"
#include "flux/data/text/formats.h"
#include "flux/data/text/line_words.h"

namespace flux {
namespace {

// A feature in two: before and behind its first ':'; the second is empty where there is none.
struct Halves {
  std::string_view first, second;
  bool marked = false;
};

Halves split_at_mark(std::string_view word) {
  const size_t mark = word.find(':');
  if (mark == std::string_view::npos) return {word, {}, false};
  return {word.substr(0, mark), word.substr(mark + 1), true};
}

LineError no_value(std::string_view word, size_t column) {
  return {column + word.size(),
          fmt::format("{} ends where its value should be", shown_field(word))};
}

}  // namespace

std::optional<LineError> LibsvmParser::parse(std::string_view line, LineRecord* out) const {
  LineWords words(without_return(line));
  shape_.begin(line.size(), out);
  std::string_view word = words.next();
  if (word.empty() || word[0] == '#') return LineError{1, "no label; a line begins with its label"};
  if (auto wrong = read_head(word, words.column_of(word), out)) return wrong;
  for (word = words.next(); !word.empty() && word[0] != '#'; word = words.next())
    if (auto wrong = read_feature(word, words.column_of(word), out)) return wrong;
  return std::nullopt;
}

// LABEL or LABEL:WEIGHT.
std::optional<LineError> LibsvmParser::read_head(std::string_view word, size_t column,
                                                 LineRecord* out) const {
  const Halves head = split_at_mark(word);
  if (auto wrong = shape_.read_class(head.first, column, out)) {
    wrong->what += "; a line begins with its label";
    return wrong;
  }
  if (!head.marked) return std::nullopt;
  if (!shape_.weights())
    return LineError{column + head.first.size(),
                     "the example has a weight, but the job does not say data.weights: true"};
  return shape_.read_weight(head.second, column + head.first.size() + 1, out);
}

std::optional<LineError> LibsvmParser::read_feature(std::string_view word, size_t column,
                                                    LineRecord* out) const {
  const Halves feature = split_at_mark(word);
  if (feature.first == "qid" && feature.marked) {
    if (feature.second.empty()) return no_value(word, column);
    if (auto wrong = LineShape::note_once("qid:", column, &out->has_session)) return wrong;
    shape_.set_session(feature.second, out);
    return std::nullopt;
  }
  if (feature.marked && feature.second.empty()) return no_value(word, column);
  return shape_.read_weighted(0, feature.first, column, feature.second, 1, out);
}

std::optional<LineError> LibffmParser::parse(std::string_view line, LineRecord* out) const {
  LineWords words(without_return(line));
  shape_.begin(line.size(), out);
  std::string_view word = words.next();
  if (word.empty() || word[0] == '#') return LineError{1, "no label; a line begins with its label"};
  if (auto wrong = shape_.read_class(word, words.column_of(word), out)) {
    wrong->what += "; a line begins with its label";
    return wrong;
  }
  for (word = words.next(); !word.empty() && word[0] != '#'; word = words.next())
    if (auto wrong = read_feature(word, words.column_of(word), out)) return wrong;
  return std::nullopt;
}

std::optional<LineError> LibffmParser::read_feature(std::string_view word, size_t column,
                                                    LineRecord* out) const {
  const Halves outer = split_at_mark(word);
  if (!outer.marked)
    return LineError{
        column, fmt::format("{} is no feature; features are FIELD:INDEX:VALUE", shown_field(word))};
  uint64_t field = 0;
  const size_t slots = shape_.slots().size();
  if (!parse_whole(outer.first, &field) || field >= slots)
    return LineError{column,
                     fmt::format("there is no field {}; data.slots has {}, the first is field 0",
                                 shown_field(outer.first), slots)};
  const Halves inner = split_at_mark(outer.second);
  if (inner.marked && inner.second.empty()) return no_value(word, column);
  return shape_.read_weighted(static_cast<uint32_t>(field), inner.first,
                              column + outer.first.size() + 1, inner.second, 1, out);
}

Status check_libsvm(const DataOptions& options) {
  FLUX_RETURN_IF_ERROR(
      check_declared(options, {.minus_one_is_zero = true, .dense = false, .many_labels = false}));
  if (options.slots.size() != 1)
    return invalid(
        "data: format libsvm has one slot, but data.slots names {}; libffm and vw have "
        "several",
        options.slots.size());
  return Status::ok();
}

Status check_libffm(const DataOptions& options) {
  return check_declared(options, {.minus_one_is_zero = true,
                                  .dense = false,
                                  .many_labels = false,
                                  .weights = false,
                                  .sessions = false});
}

Result<std::unique_ptr<const BlockFormat>> libsvm_lines(const DataOptions& options) {
  return line_format(options, std::make_unique<LibsvmParser>(options));
}

Result<std::unique_ptr<const BlockFormat>> libffm_lines(const DataOptions& options) {
  return line_format(options, std::make_unique<LibffmParser>(options));
}

}  // namespace flux
