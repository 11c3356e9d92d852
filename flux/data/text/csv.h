// The format csv: cells between separators, each a column of the header or of data.columns.
//
//   label,user,history,price
//   1,17,3|5,0.25
//
// A cell of a slot has any number of items (KEY, or KEY:NUMBER in a slot with values) between the
// characters of data.csv.list. A cell in quotes may hold separators; a quote in it is written
// twice; a record is one line. What a missing cell means: docs/using/formats.md. Threads and
// failure: as LineParser.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "flux/data/text/columns.h"
#include "flux/data/text/line_parser.h"
#include "flux/data/text/line_shape.h"

namespace flux {

class CsvParser final : public LineParser {
 public:
  // `columns` are what stands in the lines, in order.
  CsvParser(const DataOptions& options, std::vector<LineColumn> columns);
  std::optional<LineError> parse(std::string_view line, LineRecord* out) const override;
  std::string name_of(std::string_view line) const override;

 private:
  struct Cell;
  std::optional<LineError> take_cell(const LineColumn& column, const Cell& cell,
                                     LineRecord* out) const;
  // The same, with advice where it cannot be read.
  std::optional<LineError> read_cell(const LineColumn& column, const Cell& cell,
                                     LineRecord* out) const;
  std::optional<LineError> read_keys(const LineColumn& column, const Cell& cell,
                                     LineRecord* out) const;
  std::optional<LineError> next_cell(std::string_view line, size_t* at, Cell* out) const;
  bool is_missing(std::string_view text) const;
  LineError wrong_count(std::string_view line, size_t cells) const;

  const LineShape shape_;
  const std::vector<LineColumn> columns_;
  const std::vector<std::string> missing_;
  const char separator_;
  const bool quoted_, lists_;
  const char quote_, list_;
};

// The columns of files whose first line is `header`, as data.columns would name them.
Result<std::vector<std::string>> csv_columns(std::string_view header, const DataOptions& options);

// With data.columns as the first lines of the files say; all files must say the same. Options of
// other formats, and of files without header, as they are.
Result<DataOptions> with_csv_header(std::span<const std::string> files, const DataOptions& options);

}  // namespace flux
