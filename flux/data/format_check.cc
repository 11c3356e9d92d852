#include "flux/data/format_check.h"

#include <algorithm>
#include <set>

#include "flux/base/text.h"

namespace flux {
namespace {

// Everything that a model or a line may name, each once.
Status check_names(const DataOptions& options) {
  std::set<std::string> seen;
  std::vector<std::string> all = options.dense;
  for (const SlotOptions& slot : options.slots) all.push_back(slot.name);
  all.insert(all.end(), options.labels.begin(), options.labels.end());
  for (const std::string& name : all) {
    if (name.empty()) return invalid("data: a slot, label or dense feature has no name");
    if (!seen.insert(name).second)
      return invalid("data: '{}' is declared twice among slots, dense and labels", name);
  }
  for (const char* taken : {"dense", "weight"})
    if (seen.contains(taken))
      return invalid("data: '{}' is reserved; give the feature another name", taken);
  if (options.labels.empty()) return invalid("data.labels is empty; name at least one");
  return Status::ok();
}

bool is_default(const CsvOptions& csv) {
  const CsvOptions plain;
  return csv.header == plain.header && csv.separator == plain.separator &&
         csv.quote == plain.quote && csv.list == plain.list && csv.missing == plain.missing &&
         csv.ignore == plain.ignore && csv.weight == plain.weight && csv.id == plain.id &&
         csv.sid == plain.sid;
}

Status check_uses(const DataOptions& options, const FormatUses& uses) {
  const auto not_for = [&](const char* what, const char* others) {
    return invalid("data: {} for {}, not for format {}", what, others, options.format);
  };
  if (!uses.columns && !options.columns.empty())
    return not_for("columns is", "formats multislot and csv");
  if (!uses.csv && !is_default(options.csv)) return not_for("csv is", "format csv");
  if (!uses.minus_one_is_zero && options.minus_one_is_zero)
    return not_for("minus_one_is_zero is", "formats libsvm, libffm, vw and csv");
  if (!uses.dense && !options.dense.empty())
    return invalid("data: format {} has no dense features; '{}' cannot be among its lines",
                   options.format, options.dense[0]);
  if (!uses.many_labels && options.labels.size() > 1)
    return invalid("data: format {} has one label in each line, but data.labels names {}",
                   options.format, options.labels.size());
  if (!uses.weights && options.weights)
    return invalid("data: format {} has no weights of examples; take data.weights out",
                   options.format);
  if (!uses.sessions && options.group == "sid")
    return invalid("data: format {} has no searches or sessions; data.group may name a slot",
                   options.format);
  for (const SlotOptions& slot : options.slots)
    if (slot.values && !uses.values)
      return invalid("data: format {} has keys without values; take values: true out of slot '{}'",
                     options.format, slot.name);
  for (const SlotOptions& slot : options.slots)
    if (options.one_key && slot.values)
      return invalid("data: one_key does not go with values of keys, as slot '{}' has", slot.name);
  return Status::ok();
}

}  // namespace

Status check_no_words(const DataOptions& options) {
  const DataOptions plain;
  if (options.vocabulary.empty() && options.negatives == plain.negatives &&
      options.subsample == plain.subsample)
    return Status::ok();
  return invalid(
      "data: vocabulary, negatives and subsample are for format sentences, not for format {}",
      options.format);
}

Status check_declared(const DataOptions& options, const FormatUses& uses) {
  FLUX_RETURN_IF_ERROR(check_no_words(options));
  FLUX_RETURN_IF_ERROR(check_names(options));
  FLUX_RETURN_IF_ERROR(check_uses(options, uses));
  if (options.slots.empty() && options.dense.empty() && !options.key_per_example)
    return invalid("data: format {} needs 'slots' or 'dense': what the records hold",
                   options.format);
  std::vector<std::string> names;
  for (const SlotOptions& slot : options.slots) names.push_back(slot.name);
  for (const std::string& slice : options.slices)
    if (std::find(names.begin(), names.end(), slice) == names.end())
      return invalid("metrics.slices: '{}' is no slot{}; slots: {}", slice,
                     did_you_mean(slice, names), join(names, ", "));
  names.emplace_back("sid");
  if (options.group.empty() || std::find(names.begin(), names.end(), options.group) != names.end())
    return Status::ok();
  return invalid("data.group '{}' is no slot{}; allowed: {}", options.group,
                 did_you_mean(options.group, names), join(names, ", "));
}

Status check_fixed(const DataOptions& options) {
  if (options.slots.empty() && options.dense.empty() && !options.weights && options.group.empty() &&
      options.slices.empty() && !options.raw_keys && !options.one_key &&
      options.labels == DataOptions().labels && options.columns.empty() &&
      !options.minus_one_is_zero && is_default(options.csv))
    return Status::ok();
  return invalid(
      "data: format {} has fixed columns; slots, dense, labels, weights, group, raw_keys, "
      "one_key, columns, csv, minus_one_is_zero and metrics.slices are for other formats",
      options.format);
}

}  // namespace flux
