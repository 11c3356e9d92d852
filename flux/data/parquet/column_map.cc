#include "flux/data/parquet/column_map.h"

#include <algorithm>

#include "flux/base/text.h"

namespace flux {
namespace {

using parquet_plugin::As;
using parquet_plugin::Column;
using parquet_plugin::Kind;

constexpr const char* kWeight = "weight";
constexpr const char* kSession = "sid";
constexpr const char* kValuesSuffix = "_values";

class Mapper {
 public:
  Mapper(const std::string& path, const std::vector<Column>& columns, ColumnMap* out)
      : path_(path), columns_(columns), out_(out) {
    for (const Column& column : columns) names_.emplace_back(column.name);
  }

  // One number in each row.
  Result<uint32_t> number(const char* what, const std::string& name) {
    FLUX_ASSIGN_OR_RETURN(const uint32_t at, find(what, name));
    const Column& column = columns_[at];
    if (column.many || (column.kind != Kind::kReal && column.kind != Kind::kWhole))
      return refuse(what, column, "a number in each row (int, float, double, bool)");
    return want(at, As::kNumbers);
  }
  Result<uint32_t> keys(const SlotOptions& slot) {
    FLUX_ASSIGN_OR_RETURN(const uint32_t at, find("slot", slot.name));
    const Column& column = columns_[at];
    if (slot.text && column.kind != Kind::kText)
      return refuse("slot", column, "texts or lists of texts (the slot says text: true)");
    if (!slot.text && column.kind == Kind::kText)
      return refuse("slot", column, "whole numbers or lists of them; texts need text: true");
    if (!slot.text && column.kind != Kind::kWhole)
      return refuse("slot", column, "whole numbers, texts, or lists of them");
    return want(at, As::kKeys);
  }
  Result<uint32_t> values(const SlotOptions& slot) {
    FLUX_ASSIGN_OR_RETURN(const uint32_t at, find("values of a slot", slot.name + kValuesSuffix));
    if (columns_[at].kind != Kind::kReal && columns_[at].kind != Kind::kWhole)
      return refuse("values of a slot", columns_[at], "numbers or lists of them");
    return want(at, As::kNumbers);
  }
  Result<uint32_t> session() {
    FLUX_ASSIGN_OR_RETURN(const uint32_t at, find("group", kSession));
    const Column& column = columns_[at];
    if (column.many || (column.kind != Kind::kWhole && column.kind != Kind::kText))
      return refuse("group", column, "a whole number or a text in each row");
    return want(at, As::kKeys);
  }

 private:
  Result<uint32_t> find(const char* what, const std::string& name) const {
    const auto at = std::find(names_.begin(), names_.end(), name);
    if (at == names_.end())
      return invalid("{}: has no column '{}' ({}){}; it has: {}", path_, name, what,
                     did_you_mean(name, names_), names_.empty() ? "none" : join(names_, ", "));
    if (std::find(at + 1, names_.end(), name) != names_.end())
      return invalid("{}: has two columns '{}'", path_, name);
    return static_cast<uint32_t>(at - names_.begin());
  }
  Status refuse(const char* what, const Column& column, const char* allowed) const {
    return invalid("{}: column '{}' ({}) is {}; allowed: {}", path_, column.name, what, column.type,
                   allowed);
  }
  uint32_t want(uint32_t column, As as) {
    out_->wanted.push_back({column, as});
    return static_cast<uint32_t>(out_->wanted.size() - 1);
  }

  const std::string& path_;
  const std::vector<Column>& columns_;
  ColumnMap* const out_;
  std::vector<std::string> names_;
};

}  // namespace

Result<ColumnMap> map_columns(const std::string& path, const std::vector<Column>& columns,
                              const DataOptions& options) {
  ColumnMap out;
  Mapper mapper(path, columns, &out);
  for (const std::string& name : options.labels) {
    FLUX_ASSIGN_OR_RETURN(out.labels.emplace_back(), mapper.number("label", name));
  }
  if (options.weights) {
    FLUX_ASSIGN_OR_RETURN(out.weight, mapper.number("weights of the examples", kWeight));
  }
  if (options.group == kSession) {
    FLUX_ASSIGN_OR_RETURN(out.group, mapper.session());
  }
  for (const std::string& name : options.dense) {
    FLUX_ASSIGN_OR_RETURN(out.dense.emplace_back(), mapper.number("dense feature", name));
  }
  for (const SlotOptions& slot : options.slots) {
    FLUX_ASSIGN_OR_RETURN(out.slots.emplace_back(), mapper.keys(slot));
    out.values.push_back(ColumnMap::kNone);
    if (!slot.values) continue;
    FLUX_ASSIGN_OR_RETURN(out.values.back(), mapper.values(slot));
  }
  return out;
}

Result<DataOptions> guess_parquet_options(const std::string& path,
                                          const std::vector<Column>& columns, std::string* note) {
  DataOptions out;
  out.format = "parquet";
  out.labels.clear();
  std::vector<std::string> names, left_out;
  for (const Column& column : columns) names.emplace_back(column.name);
  const auto has = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const Column& column : columns) {
    const std::string name = column.name;
    const bool of_values = name.ends_with(kValuesSuffix) &&
                           has(name.substr(0, name.size() - std::string(kValuesSuffix).size()));
    if (name.starts_with("label"))
      out.labels.push_back(name);
    else if (name == kWeight)
      out.weights = true;
    else if (name == kSession)
      out.group = name;
    else if (of_values)
      continue;
    else if (column.kind == Kind::kReal && !column.many)
      out.dense.push_back(name);
    else if (column.kind == Kind::kWhole || column.kind == Kind::kText)
      out.slots.push_back({name, "", column.kind == Kind::kText, has(name + kValuesSuffix)});
    else
      left_out.push_back(fmt::format("'{}' ({})", name, column.type));
  }
  if (!left_out.empty())
    *note = fmt::format("{}: not read, as their types cannot be: {}", path, join(left_out, ", "));
  if (!out.labels.empty()) return out;
  return invalid(
      "{}: which column is the label is not clear; it has: {}\nname a job whose data "
      "section says it: --job JOB",
      path, join(names, ", "));
}

}  // namespace flux
