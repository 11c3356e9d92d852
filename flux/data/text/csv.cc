#include "flux/data/text/csv.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "flux/base/text.h"
#include "flux/data/format_check.h"
#include "flux/data/text/formats.h"
#include "flux/data/text/line_words.h"

namespace flux {
namespace {

char one_character(const std::string& text) {
  return text == "tab" ? '\t' : text.empty() ? '\0' : text[0];
}

Status check_character(const char* name, const std::string& text, bool may_be_empty) {
  const bool good = text.size() == 1 || text == "tab" || (text.empty() && may_be_empty);
  if (good && text != "\n" && text != "\r") return Status::ok();
  return invalid("data.csv.{}: {} is not one character; allowed: one character, or tab{}", name,
                 shown_field(text), may_be_empty ? ", or nothing" : "");
}

}  // namespace

// A cell's text, without quotes, and where it begins in the line.
struct CsvParser::Cell {
  std::string_view text;
  size_t column = 1;
  std::string unquoted;  // what `text` shows of a cell with doubled quotes, and slack behind it
};

CsvParser::CsvParser(const DataOptions& options, std::vector<LineColumn> columns)
    : shape_(options),
      columns_(std::move(columns)),
      missing_(options.csv.missing),
      separator_(one_character(options.csv.separator)),
      quoted_(!options.csv.quote.empty()),
      lists_(!options.csv.list.empty()),
      quote_(one_character(options.csv.quote)),
      list_(one_character(options.csv.list)) {}

bool CsvParser::is_missing(std::string_view text) const {
  return std::find(missing_.begin(), missing_.end(), text) != missing_.end();
}

// From *at on, which then is at the separator behind it, or at the end.
std::optional<LineError> CsvParser::next_cell(std::string_view line, size_t* at, Cell* out) const {
  const size_t begin = *at;
  if (!quoted_ || begin == line.size() || line[begin] != quote_) {
    *at = std::min(line.find(separator_, begin), line.size());
    out->text = line.substr(begin, *at - begin);
    out->column = begin + 1;
    return std::nullopt;
  }
  out->column = begin + 2;
  out->unquoted.clear();
  for (size_t from = begin + 1;;) {
    const size_t end = line.find(quote_, from);
    if (end == std::string_view::npos)
      return LineError{begin + 1, "a quote that is not closed in its line; a record is one line"};
    out->unquoted.append(line.substr(from, end - from));
    from = end + 2;
    if (end + 1 < line.size() && line[end + 1] == quote_) {
      out->unquoted += quote_;
      continue;
    }
    if (end + 1 < line.size() && line[end + 1] != separator_)
      return LineError{end + 2, "text behind the closing quote of a cell"};
    *at = end + 1;
    break;
  }
  const size_t size = out->unquoted.size();
  out->unquoted.append(kSlack, '\0');
  out->text = std::string_view(out->unquoted).substr(0, size);
  return std::nullopt;
}

namespace {

// What a job may say about a cell that cannot be read.
std::string advice(const LineColumn& column, std::string_view cell, std::string_view what) {
  constexpr std::string_view kNothing[] = {"NA",  "N/A",  "NaN",  "nan", "null", "NULL", "Null",
                                           "nil", "None", "none", "\\N", "?",    "-",    "."};
  const bool nothing =
      std::find(std::begin(kNothing), std::end(kNothing), cell) != std::end(kNothing);
  if (nothing && column.kind != LineColumn::kLabel)
    return fmt::format("; if {} means that there is none, name it in data.csv.missing",
                       shown_field(cell));
  if (column.kind == LineColumn::kSlot && what.starts_with("key "))
    return "; keys that are words want text: true of the slot";
  return "";
}

}  // namespace

LineError CsvParser::wrong_count(std::string_view line, size_t cells) const {
  std::vector<std::string> names;
  for (const LineColumn& column : columns_) names.push_back(column.name);
  constexpr size_t kShown = 20;
  const bool more = names.size() > kShown;
  if (more) names.resize(kShown);
  return {line.size() + 1, fmt::format("{} cell{}; expected {}: {}{}", cells, cells == 1 ? "" : "s",
                                       columns_.size(), join(names, ", "), more ? ", ..." : "")};
}

std::optional<LineError> CsvParser::parse(std::string_view line, LineRecord* out) const {
  line = without_return(line);
  shape_.begin(line.size(), out);
  out->labels.assign(shape_.labels().size(), 0);
  size_t at = 0, cells = 0;
  Cell cell;
  for (;;) {
    if (auto wrong = next_cell(line, &at, &cell)) return wrong;
    if (cells < columns_.size())
      if (auto wrong = read_cell(columns_[cells], cell, out)) return wrong;
    ++cells;
    if (at == line.size()) break;
    ++at;
  }
  if (cells != columns_.size()) return wrong_count(line, cells);
  return std::nullopt;
}

std::string CsvParser::name_of(std::string_view line) const {
  line = without_return(line);
  size_t at = 0;
  Cell cell;
  for (const LineColumn& column : columns_) {
    if (next_cell(line, &at, &cell)) break;
    if (column.kind == LineColumn::kId) return is_missing(cell.text) ? "" : std::string(cell.text);
    if (at == line.size()) break;
    ++at;
  }
  return "";
}

std::optional<LineError> CsvParser::read_keys(const LineColumn& column, const Cell& cell,
                                              LineRecord* out) const {
  if (!lists_) return shape_.read_item(column.index, cell.text, cell.column, out);
  size_t begin = 0;
  while (begin <= cell.text.size()) {
    const size_t end = std::min(cell.text.find(list_, begin), cell.text.size());
    if (auto wrong = shape_.read_item(column.index, cell.text.substr(begin, end - begin),
                                      cell.column + begin, out))
      return wrong;
    begin = end + 1;
  }
  return std::nullopt;
}

std::optional<LineError> CsvParser::read_cell(const LineColumn& column, const Cell& cell,
                                              LineRecord* out) const {
  std::optional<LineError> wrong = take_cell(column, cell, out);
  if (wrong) [[unlikely]]
    wrong->what += advice(column, cell.text, wrong->what);
  return wrong;
}

std::optional<LineError> CsvParser::take_cell(const LineColumn& column, const Cell& cell,
                                              LineRecord* out) const {
  const bool missing = is_missing(cell.text);
  switch (column.kind) {
    case LineColumn::kSlot:
      return missing ? std::nullopt : read_keys(column, cell, out);
    case LineColumn::kLabel: {
      if (missing) return LineError{cell.column, fmt::format("label '{}' is missing", column.name)};
      const auto wrong = shape_.read_class(cell.text, cell.column, out);
      if (wrong)
        return LineError{cell.column, fmt::format("label '{}' is {}, not a number", column.name,
                                                  shown_field(cell.text))};
      out->labels[column.index] = out->labels.back();
      out->labels.pop_back();
      return std::nullopt;
    }
    case LineColumn::kDense:
      return missing ? std::nullopt : shape_.read_dense(column.index, cell.text, cell.column, out);
    case LineColumn::kWeight:
      return missing ? std::nullopt : shape_.read_weight(cell.text, cell.column, out);
    case LineColumn::kSid:
      if (!missing) shape_.set_session(cell.text, out);
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

namespace {

Status check_csv_columns(const std::vector<LineColumn>& columns) {
  for (const LineColumn& column : columns)
    if (column.kind == LineColumn::kAllDense || column.kind == LineColumn::kLogKey ||
        column.width > 1)
      return invalid("data.columns: '{}' is for format multislot; a cell of csv holds one number",
                     column.name);
  return Status::ok();
}

}  // namespace

Status check_csv(const DataOptions& options) {
  FLUX_RETURN_IF_ERROR(
      check_declared(options, {.columns = true, .csv = true, .minus_one_is_zero = true}));
  FLUX_RETURN_IF_ERROR(check_character("separator", options.csv.separator, false));
  FLUX_RETURN_IF_ERROR(check_character("quote", options.csv.quote, true));
  FLUX_RETURN_IF_ERROR(check_character("list", options.csv.list, true));
  if (one_character(options.csv.separator) == one_character(options.csv.quote) ||
      one_character(options.csv.separator) == one_character(options.csv.list))
    return invalid("data.csv: separator, quote and list have to differ");
  if (options.columns.empty()) {
    if (options.csv.header) return Status::ok();
    return invalid("data: csv without a header needs data.columns: what stands where in a line");
  }
  FLUX_ASSIGN_OR_RETURN(const auto columns, columns_of(options.columns, options));
  return check_csv_columns(columns);
}

Result<std::unique_ptr<const BlockFormat>> csv_lines(const DataOptions& options) {
  FLUX_ASSIGN_OR_RETURN(std::vector<LineColumn> columns, columns_of(options.columns, options));
  return line_format(options, std::make_unique<CsvParser>(options, std::move(columns)));
}

}  // namespace flux
