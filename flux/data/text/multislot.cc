#include "flux/data/text/multislot.h"

#include <fmt/format.h>

#include "flux/data/format_check.h"
#include "flux/data/text/formats.h"
#include "flux/data/text/line_words.h"

namespace flux {
namespace {

constexpr uint64_t kAny = ~0ULL;

}  // namespace

Result<std::vector<LineColumn>> multislot_columns(const DataOptions& options) {
  return columns_of(options.columns.empty() ? default_columns(options) : options.columns, options);
}

std::string_view search_of_logkey(std::string_view logkey) {
  return logkey.size() < 32 ? std::string_view() : logkey.substr(16, 16);
}

class PlainMultiSlot::Words : public LineWords {
 public:
  using LineWords::LineWords;
};

uint64_t PlainMultiSlot::width(const LineColumn& column) const {
  if (column.kind == LineColumn::kSlot || column.kind == LineColumn::kSkip) return kAny;
  return column.kind == LineColumn::kAllDense ? shape_.dense().size() : column.width;
}

std::string PlainMultiSlot::shown_slot(size_t place) const {
  return fmt::format("slot '{}' ({})", columns_[place].name, ordinal(place + 1));
}

std::optional<LineError> PlainMultiSlot::parse(std::string_view line, LineRecord* out) const {
  Words words(without_return(line));
  shape_.begin(line.size(), out);
  out->labels.assign(shape_.labels().size(), 0);
  for (size_t place = 0; place < columns_.size(); ++place)
    if (auto wrong = read_column(place, &words, out)) return wrong;
  const std::string_view more = words.next();
  if (more.empty()) return std::nullopt;
  return LineError{words.column_of(more),
                   fmt::format("the line goes on with {} behind its last {}; is a slot missing in "
                               "data.columns, or is a number of values too small?",
                               shown_field(more), shown_slot(columns_.size() - 1))};
}

std::optional<LineError> PlainMultiSlot::read_column(size_t place, Words* words,
                                                     LineRecord* out) const {
  const LineColumn& column = columns_[place];
  const std::string_view word = words->next();
  if (word.empty())
    return LineError{words->end_column(),
                     fmt::format("{} is missing: the line ends after {} of {} slots",
                                 shown_slot(place), place, columns_.size())};
  uint64_t count = 0;
  if (!parse_whole(word, &count))
    return LineError{words->column_of(word),
                     fmt::format("{} begins with {}, not with the number of its values",
                                 shown_slot(place), shown_field(word))};
  const uint64_t wanted = width(column);
  if (wanted != kAny && count != wanted)
    return LineError{words->column_of(word),
                     fmt::format("{} says {} values; it has {}", shown_slot(place), count, wanted)};
  for (uint64_t i = 0; i < count; ++i) {
    const std::string_view value = words->next();
    if (value.empty())
      return LineError{words->end_column(),
                       fmt::format("{} says {} value{}, the line ends after {}", shown_slot(place),
                                   count, count == 1 ? "" : "s", i)};
    if (auto wrong = read_value(column, i, value, words->column_of(value), out)) return wrong;
  }
  return std::nullopt;
}

std::optional<LineError> PlainMultiSlot::read_value(const LineColumn& column, size_t i,
                                                    std::string_view word, size_t at,
                                                    LineRecord* out) const {
  const bool zero = word.find_first_not_of('0') == std::string_view::npos;
  switch (column.kind) {
    case LineColumn::kSlot:
      if (zero && !shape_.slots()[column.index].text) return std::nullopt;
      return shape_.read_key(column.index, word, at, 1, out);
    case LineColumn::kLabel:
      if (parse_number(word, &out->labels[column.index])) return std::nullopt;
      return LineError{
          at, fmt::format("label '{}' is {}, not a number", column.name, shown_field(word))};
    case LineColumn::kAllDense:
      return shape_.read_dense(static_cast<uint32_t>(i), word, at, out);
    case LineColumn::kDense:
      return shape_.read_dense(column.index + static_cast<uint32_t>(i), word, at, out);
    case LineColumn::kWeight:
      return shape_.read_weight(word, at, out);
    case LineColumn::kSid:
      shape_.set_session(word, out);
      return std::nullopt;
    case LineColumn::kLogKey:
      shape_.set_session(search_of_logkey(word), out);
      return std::nullopt;
    case LineColumn::kId:
    case LineColumn::kSkip:
      break;
  }
  return std::nullopt;
}

std::string MultiSlotParser::name_of(std::string_view line) const {
  LineWords words(without_return(line));
  std::string_view name;
  for (const LineColumn& column : columns_) {
    uint64_t count = 0;
    std::string_view value;
    if (!parse_whole(words.next(), &count)) break;
    for (; count > 0 && !(value = words.next()).empty(); --count) {
    }
    if (column.kind == LineColumn::kId || (column.kind == LineColumn::kLogKey && name.empty()))
      name = value;
  }
  return name == kNoName ? "" : std::string(name);
}

Status check_multislot(const DataOptions& options) {
  FLUX_RETURN_IF_ERROR(check_declared(options, {.columns = true, .values = false}));
  return multislot_columns(options).status();
}

Result<std::unique_ptr<const BlockFormat>> multislot_lines(const DataOptions& options) {
  FLUX_ASSIGN_OR_RETURN(std::vector<LineColumn> columns, multislot_columns(options));
  return line_format(options, std::make_unique<MultiSlotParser>(options, std::move(columns)));
}

}  // namespace flux
