// guess_csv(): columns by the header, kinds by the cells.
#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <set>

#include "flux/base/text.h"
#include "flux/data/decimal.h"
#include "flux/data/tools/guess_text.h"

namespace flux {
namespace {

// Cells without their quotes; empty: a quote is open.
std::vector<std::string> cells_of(const std::string& line, char separator) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == separator && !quoted)
      out.emplace_back();
    else if (c != '\r')
      out.back() += c;
  }
  if (quoted) out.clear();
  return out;
}

bool is_number(const std::string& text) {
  float value = 0;
  return !text.empty() && parse_decimal(text.data(), text.data() + text.size(), &value);
}

bool is_key(const std::string& text) {
  uint64_t value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  return wrong == std::errc() && end == text.data() + text.size();
}

bool is_missing(const std::string& cell) {
  return cell.empty() || cell == "NA";
}

// Keys, or KEY:NUMBER, which sets *values.
bool are_keys(const std::string& cell, bool* values) {
  bool all = true;
  for (const std::string& item : split(cell, '|')) {
    const size_t mark = item.rfind(':');
    const bool valued = mark != std::string::npos && is_number(item.substr(mark + 1));
    all = all && is_key(valued ? item.substr(0, mark) : item);
    *values = *values || valued;
  }
  return all;
}

class ColumnSeen {
 public:
  void add(const std::string& cell) {
    if (is_missing(cell)) return;
    ++cells_;
    no_numbers_ += is_number(cell) ? 0 : 1;
    no_keys_ += are_keys(cell, &values_) ? 0 : 1;
  }
  // Apart from mistakes.
  bool numbers() const { return are_mistakes(no_numbers_, cells_); }
  bool keys() const { return are_mistakes(no_keys_, cells_); }
  bool dense() const { return cells_ > 0 && numbers() && !keys(); }
  bool values() const { return values_; }
  // Whether a cell is what the column is otherwise.
  bool fits(const std::string& cell) const {
    bool valued = false;
    if (is_missing(cell)) return true;
    if (dense()) return is_number(cell);
    return !keys() || are_keys(cell, &valued);
  }

 private:
  uint64_t cells_ = 0, no_numbers_ = 0, no_keys_ = 0;  // that say something
  bool values_ = false;
};

bool is_among(const std::string& name, std::initializer_list<const char*> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Columns of numbers that are called label..., or else as labels of clicks and what follows them
// are, or else as a single one is.
std::vector<std::string> labels_of(const std::vector<std::string>& names,
                                   const std::vector<ColumnSeen>& seen) {
  std::vector<std::string> called, of_clicks, single;
  for (size_t c = 0; c < names.size(); ++c) {
    if (!seen[c].numbers()) continue;
    if (names[c].starts_with("label")) called.push_back(names[c]);
    if (is_among(names[c], {"click", "clicked", "buy", "bought", "purchase", "conversion"}))
      of_clicks.push_back(names[c]);
    if (single.empty() && is_among(names[c], {"y", "target"})) single.push_back(names[c]);
  }
  if (!called.empty()) return called;
  return of_clicks.empty() ? single : of_clicks;
}

// The separator that cuts all lines into as many cells, more than one.
char separator_of(Lines lines) {
  for (const char separator : {',', '\t', ';'}) {
    const size_t cells = cells_of(lines[0], separator).size();
    if (cells > 1 && std::all_of(lines.begin(), lines.end(), [&](const std::string& line) {
          return cells_of(line, separator).size() == cells;
        }))
      return separator;
  }
  return '\0';
}

void declare(const std::string& name, const ColumnSeen& seen, DataOptions* out) {
  if (seen.dense())
    out->dense.push_back(name);
  else
    out->slots.push_back({name, "", !seen.keys(), seen.keys() && seen.values()});
}

// Reads all lines but those in which a cell is a mistake.
bool reads_what_fits(const DataOptions& options, const std::vector<ColumnSeen>& seen, Lines lines,
                     char separator) {
  std::vector<std::string> fitting;
  for (const std::string& line : lines) {
    const std::vector<std::string> cells = cells_of(line, separator);
    bool fits = true;
    for (size_t c = 0; c < cells.size(); ++c) fits = fits && seen[c].fits(cells[c]);
    if (fits) fitting.push_back(line);
  }
  return reads_all(options, fitting);
}

}  // namespace

std::optional<DataOptions> guess_csv(Lines lines) {
  if (lines.size() < 2) return std::nullopt;
  const char separator = separator_of(lines);
  if (separator == '\0') return std::nullopt;
  const std::vector<std::string> names = cells_of(lines[0], separator);
  if (std::any_of(names.begin(), names.end(),
                  [](const std::string& name) { return name.empty() || is_number(name); }))
    return std::nullopt;
  std::vector<ColumnSeen> seen(names.size());
  for (const std::string& line : lines.subspan(1)) {
    const std::vector<std::string> cells = cells_of(line, separator);
    for (size_t c = 0; c < cells.size(); ++c) seen[c].add(cells[c]);
  }
  DataOptions out;
  out.format = "csv";
  out.csv.separator = separator == '\t' ? "tab" : std::string(1, separator);
  out.csv.missing = {"", "NA"};
  out.labels = labels_of(names, seen);
  if (out.labels.empty()) return std::nullopt;
  const std::set<std::string> labels(out.labels.begin(), out.labels.end());
  for (size_t c = 0; c < names.size(); ++c) {
    const std::string& name = names[c];
    if (labels.contains(name) || name == "id") {
      out.columns.push_back(name);
      continue;
    }
    out.weights = out.weights || name == "weight";
    if (name == "sid") out.group = "sid";
    if (name != "weight" && name != "sid") declare(name, seen[c], &out);
    out.columns.push_back(name);
  }
  if (out.slots.empty() && out.dense.empty()) return std::nullopt;
  if (!reads_what_fits(out, seen, lines.subspan(1), separator)) return std::nullopt;
  out.columns.clear();  // the header says it
  return out;
}

}  // namespace flux
