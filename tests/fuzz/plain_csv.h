// A second parser of csv, from docs/using/formats.md; plain_record.h says what for.
// Pure function.
#pragma once

#include <algorithm>

#include "tests/fuzz/plain_record.h"

namespace flux {

// False: a quote is not closed, or something stands behind a closing one.
inline bool plain_csv_cells(const CsvOptions& csv, const std::string& line,
                            std::vector<std::string>* out) {
  const char separator = csv.separator == "tab" ? '\t' : csv.separator[0];
  for (size_t i = 0;; ++i) {
    std::string cell;
    if (!csv.quote.empty() && i < line.size() && line[i] == csv.quote[0]) {
      for (++i;; ++i) {
        if (i == line.size()) return false;
        const bool quote = line[i] == csv.quote[0];
        const bool twice = quote && i + 1 < line.size() && line[i + 1] == csv.quote[0];
        if (quote && !twice) break;
        if (twice) ++i;
        cell += line[i];
      }
      ++i;
      if (i < line.size() && line[i] != separator) return false;
    } else {
      for (; i < line.size() && line[i] != separator; ++i) cell += line[i];
    }
    out->push_back(cell);
    if (i == line.size()) return true;
  }
}

inline bool plain_csv_cell(const DataOptions& options, const std::string& column,
                           const std::string& cell, PlainRecord* out) {
  const std::vector<std::string>& none = options.csv.missing;
  const bool missing = std::find(none.begin(), none.end(), cell) != none.end();
  for (size_t i = 0; i < options.labels.size(); ++i)
    if (options.labels[i] == column) return !missing && out->set_class(i, cell);
  if (missing) return true;
  if (const auto index = out->find_dense(column)) return out->set_dense(*index, cell);
  if (const auto slot = out->find_slot(column)) {
    for (const std::string& item : parts_of(cell, options.csv.list))
      if (!out->add_item(*slot, item)) return false;
    return true;
  }
  if (column == "weight") return out->set_weight(cell);
  if (column == "sid") out->set_session(cell);
  return true;  // id and -
}

// The record as text_of() shows it; none: the line is refused.
inline std::optional<std::string> plain_csv(const DataOptions& options, const std::string& line) {
  std::vector<std::string> cells;
  PlainRecord record(options);
  if (!plain_csv_cells(options.csv, without_last_return(line), &cells)) return std::nullopt;
  if (cells.size() != options.columns.size()) return std::nullopt;
  for (size_t i = 0; i < cells.size(); ++i)
    if (!plain_csv_cell(options, options.columns[i], cells[i], &record)) return std::nullopt;
  return record.text();
}

}  // namespace flux
