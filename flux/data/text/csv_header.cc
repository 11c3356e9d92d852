// The first lines of csv files.
#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "flux/base/text.h"
#include "flux/data/criteo.h"
#include "flux/data/decimal.h"
#include "flux/data/file_head.h"
#include "flux/data/lines.h"
#include "flux/data/text/csv.h"

namespace flux {
namespace {

// The cells of a header; quotes in names are left out.
std::vector<std::string> header_cells(std::string_view header, const DataOptions& options) {
  std::vector<std::string> out;
  const char separator = options.csv.separator == "tab" ? '\t' : options.csv.separator[0];
  const char quote = options.csv.quote.empty() ? '\0' : options.csv.quote[0];
  bool quoted = false;
  out.emplace_back();
  for (const char c : header) {
    if (quote != '\0' && c == quote)
      quoted = !quoted;
    else if (c == separator && !quoted)
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

// What data.columns calls the columns of a job.
class Roles {
 public:
  explicit Roles(const DataOptions& options) {
    for (const std::string& name : options.csv.ignore) roles_.try_emplace(name, "-");
    for (const std::string& name : options.labels) roles_.try_emplace(name, name);
    for (const std::string& name : options.dense) roles_.try_emplace(name, name);
    for (const SlotOptions& slot : options.slots) roles_.try_emplace(slot.name, slot.name);
    if (options.weights) roles_.try_emplace(options.csv.weight, "weight");
    roles_.try_emplace(options.csv.sid, "sid");
    roles_.try_emplace(options.csv.id, "id");
    other_ = roles_.contains("*") && roles_.at("*") == "-" ? "-" : "";
  }
  // "": the job does not know the column.
  const std::string& of(const std::string& name) const {
    const auto at = roles_.find(name);
    return at == roles_.end() ? other_ : at->second;
  }

 private:
  std::unordered_map<std::string, std::string> roles_;
  std::string other_;
};

std::vector<std::string> declared_names(const DataOptions& options) {
  std::vector<std::string> out = options.labels;
  for (const SlotOptions& slot : options.slots) out.push_back(slot.name);
  out.insert(out.end(), options.dense.begin(), options.dense.end());
  for (const std::string& name : {options.csv.weight, options.csv.sid, options.csv.id})
    out.push_back(name);
  return out;
}

size_t declared_among(const std::vector<std::string>& cells, const DataOptions& options) {
  const std::vector<std::string> names = declared_names(options);
  return static_cast<size_t>(std::count_if(cells.begin(), cells.end(), [&](const auto& cell) {
    return std::find(names.begin(), names.end(), cell) != names.end();
  }));
}

// A first line that names nothing of the job: cut by another character, or no header at all.
Status check_header(std::string_view header, const std::vector<std::string>& cells,
                    const DataOptions& options) {
  if (declared_among(cells, options) > 0) return Status::ok();
  DataOptions other = options;
  for (const char* separator : {",", ";", "tab", "|", " "}) {
    other.csv.separator = separator;
    if (declared_among(header_cells(header, other), options) > 1)
      return invalid(
          "1:1: its columns are parted by '{}', not by '{}'; say data.csv.separator: "
          "\"{}\"",
          separator, options.csv.separator, separator);
  }
  float number = 0;
  if (std::any_of(cells.begin(), cells.end(), [&](const std::string& cell) {
        return parse_decimal(cell.data(), cell.data() + cell.size(), &number);
      }))
    return invalid(
        "1:1: its first line names no column of the job; if that is a record already, say "
        "data.csv.header: false and data.columns, which says what stands where");
  return Status::ok();
}

Result<std::string> header_of(const std::string& path, const PipeOptions& pipe) {
  std::string text;
  for (const size_t bytes : {size_t{1} << 14, size_t{kCriteoLineBytesMax} + 1}) {  // mostly short
    FLUX_ASSIGN_OR_RETURN(text, read_file_head(path, bytes, pipe));
    if (text.size() < bytes || text.find('\n') != std::string::npos) break;
  }
  if (text.empty()) return invalid("{}: holds no record; remove it from the data or fill it", path);
  if (std::min(text.find('\n'), text.size()) > kCriteoLineBytesMax)
    return invalid("{}:1:1: line is longer than {} bytes; the first one should name the columns",
                   path, kCriteoLineBytesMax);
  text.resize(std::min(text.find('\n'), text.size()));
  if (!text.empty() && text.back() == '\r') text.pop_back();
  text.erase(0, byte_order_mark_bytes(text));
  return text;
}

}  // namespace

Result<std::vector<std::string>> csv_columns(std::string_view header, const DataOptions& options) {
  std::vector<std::string> out;
  const std::vector<std::string> cells = header_cells(header, options);
  FLUX_RETURN_IF_ERROR(check_header(header, cells, options));
  const Roles roles(options);
  std::unordered_set<std::string> found;
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string& role = roles.of(cells[i]);
    if (role.empty() && cells[i] == options.csv.weight)
      return invalid(
          "1:1: its {} column '{}' has weights of examples, but the job does not say data.weights: "
          "true; say it, or name the column in data.csv.ignore",
          ordinal(i + 1), cells[i]);
    if (role.empty())
      return invalid(
          "1:1: its {} column {} is not declared in the job{}; declare it, or name it "
          "in data.csv.ignore",
          ordinal(i + 1), shown_field(cells[i]), did_you_mean(cells[i], declared_names(options)));
    if (!found.insert(role).second && role != "-")
      return invalid("1:1: has two columns {}", shown_field(cells[i]));
    out.push_back(role);
  }
  const auto missing = [&](const std::string& name) { return !found.contains(name); };
  for (const std::string& name : declared_names(options)) {
    const bool special =
        name == options.csv.weight || name == options.csv.sid || name == options.csv.id;
    if (!special && missing(name))
      return invalid("1:1: has no column '{}', which the job declares{}; it has: {}", name,
                     did_you_mean(name, cells), join(cells, ", "));
  }
  if (options.weights && missing("weight"))
    return invalid("1:1: has no column '{}' for data.weights; see data.csv.weight",
                   options.csv.weight);
  if (options.group == "sid" && missing("sid"))
    return invalid("1:1: has no column '{}' for data.group: sid; see data.csv.sid",
                   options.csv.sid);
  return out;
}

Result<DataOptions> with_csv_header(std::span<const std::string> files,
                                    const DataOptions& options) {
  if (options.format != "csv" || !options.csv.header || files.empty()) return options;
  DataOptions out = options;
  std::string first;
  for (const std::string& path : files) {
    FLUX_ASSIGN_OR_RETURN(const std::string header, header_of(path, options.pipe));
    if (path == files[0]) {
      first = header;
      if (!out.columns.empty()) continue;  // the job says it
      auto columns = csv_columns(header, options);
      if (!columns.is_ok()) return invalid("{}:{}", path, columns.status().message());
      out.columns = std::move(columns).value();
    } else if (header != first) {
      return invalid("{}:1:1: its header is not that of {}", path, files[0]);
    }
  }
  return out;
}

}  // namespace flux
