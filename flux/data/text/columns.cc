#include "flux/data/text/columns.h"

#include <algorithm>
#include <map>
#include <optional>

#include "flux/base/text.h"
#include "flux/data/text/line_shape.h"

namespace flux {
namespace {

std::map<std::string, LineColumn> declared(const DataOptions& options) {
  std::map<std::string, LineColumn> out;
  const auto add = [&](const std::string& name, LineColumn::Kind kind, size_t index) {
    out[name] = {kind, static_cast<uint32_t>(index), name};
  };
  for (size_t i = 0; i < options.labels.size(); ++i) add(options.labels[i], LineColumn::kLabel, i);
  for (size_t i = 0; i < options.slots.size(); ++i)
    add(options.slots[i].name, LineColumn::kSlot, i);
  for (size_t i = 0; i < options.dense.size(); ++i) add(options.dense[i], LineColumn::kDense, i);
  return out;
}

const std::map<std::string, LineColumn::Kind>& special() {
  static const std::map<std::string, LineColumn::Kind> names = {
      {"dense", LineColumn::kAllDense}, {"weight", LineColumn::kWeight}, {"id", LineColumn::kId},
      {"sid", LineColumn::kSid},        {"logkey", LineColumn::kLogKey}, {"-", LineColumn::kSkip}};
  return names;
}

// FIRST..LAST; takes the dense features from `left`. Nothing: the name is no such thing.
std::optional<LineColumn> take_range(const std::string& name, const DataOptions& options,
                                     std::map<std::string, LineColumn>* left) {
  const size_t dots = name.find("..");
  if (dots == std::string::npos) return std::nullopt;
  const auto first = left->find(name.substr(0, dots)), last = left->find(name.substr(dots + 2));
  if (first == left->end() || last == left->end()) return std::nullopt;
  const LineColumn from = first->second, to = last->second;
  if (from.kind != LineColumn::kDense || to.kind != LineColumn::kDense || from.index > to.index)
    return std::nullopt;
  for (uint32_t i = from.index; i <= to.index; ++i)
    if (!left->contains(options.dense[i])) return std::nullopt;
  for (uint32_t i = from.index; i <= to.index; ++i) left->erase(options.dense[i]);
  return LineColumn{LineColumn::kDense, from.index, name, to.index - from.index + 1};
}

Status missing(const std::map<std::string, LineColumn>& left, bool all_dense) {
  for (const auto& [name, column] : left) {
    if (column.kind == LineColumn::kDense && all_dense) continue;
    const char* what = column.kind == LineColumn::kLabel  ? "label"
                       : column.kind == LineColumn::kSlot ? "slot"
                                                          : "dense feature";
    return invalid("data.columns: the {} '{}' is not among them; where does it stand in a line?",
                   what, name);
  }
  return Status::ok();
}

Status check_whole(const std::vector<LineColumn>& columns, const DataOptions& options) {
  const auto has = [&](LineColumn::Kind kind) {
    return std::any_of(columns.begin(), columns.end(),
                       [&](const LineColumn& column) { return column.kind == kind; });
  };
  if (has(LineColumn::kAllDense) && options.dense.empty())
    return invalid("data.columns: 'dense' stands for all dense features, but data.dense has none");
  if (has(LineColumn::kAllDense) && has(LineColumn::kDense))
    return invalid("data.columns: has 'dense', which stands for all dense features, and also '{}'",
                   std::find_if(columns.begin(), columns.end(), [](const LineColumn& column) {
                     return column.kind == LineColumn::kDense;
                   })->name);
  if (has(LineColumn::kWeight) != options.weights)
    return invalid("data.columns: {}", options.weights
                                           ? "data.weights is true, but no column is 'weight'"
                                           : "has 'weight', but data.weights is not true");
  if (options.group == kSessionGroup && !has(LineColumn::kSid) && !has(LineColumn::kLogKey))
    return invalid("data.columns: data.group is sid, but no column is 'sid' or 'logkey'");
  if (options.group == kSessionGroup && has(LineColumn::kSid) && has(LineColumn::kLogKey))
    return invalid(
        "data.columns: data.group is sid, which both 'sid' and 'logkey' say; write - for the "
        "column that is not to be read");
  return Status::ok();
}

}  // namespace

std::string ordinal(size_t n) {
  const size_t tens = n % 100, ones = n % 10;
  const bool teen = tens >= 11 && tens <= 13;
  return fmt::format("{}{}", n,
                     teen        ? "th"
                     : ones == 1 ? "st"
                     : ones == 2 ? "nd"
                     : ones == 3 ? "rd"
                                 : "th");
}

Result<std::vector<LineColumn>> columns_of(const std::vector<std::string>& names,
                                           const DataOptions& options) {
  std::map<std::string, LineColumn> left = declared(options);
  std::vector<std::string> known;
  for (const auto& [name, column] : left) known.push_back(name);
  for (const auto& [name, kind] : special()) known.push_back(name);
  std::vector<LineColumn> out;
  for (const std::string& name : names) {
    const auto at = left.find(name);
    if (at != left.end()) {
      out.push_back(at->second);
      left.erase(at);
      continue;
    }
    if (auto range = take_range(name, options, &left)) {
      out.push_back(*std::move(range));
      continue;
    }
    const auto role = special().find(name);
    const bool twice = std::any_of(out.begin(), out.end(), [&](const LineColumn& column) {
      return column.name == name && column.kind != LineColumn::kSkip;
    });
    if (twice) return invalid("data.columns: '{}' comes twice", name);
    if (role == special().end())
      return invalid(
          "data.columns: '{}' (the {}) is no {}{}; declare it, or write - for a column that is not "
          "read",
          name, ordinal(out.size() + 1),
          name.find("..") == std::string::npos
              ? "label, slot or dense feature"
              : "FIRST..LAST of dense features that come once, in the order of data.dense",
          did_you_mean(name, known));
    out.push_back({role->second, 0, name});
  }
  const bool all_dense = std::any_of(out.begin(), out.end(), [](const LineColumn& column) {
    return column.kind == LineColumn::kAllDense;
  });
  FLUX_RETURN_IF_ERROR(missing(left, all_dense));
  FLUX_RETURN_IF_ERROR(check_whole(out, options));
  return out;
}

std::vector<std::string> default_columns(const DataOptions& options) {
  std::vector<std::string> out = options.labels;
  if (options.weights) out.emplace_back("weight");
  if (options.group == kSessionGroup) out.emplace_back("sid");
  for (const SlotOptions& slot : options.slots) out.push_back(slot.name);
  if (!options.dense.empty()) out.emplace_back("dense");
  return out;
}

}  // namespace flux
