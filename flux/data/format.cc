#include "flux/data/format.h"

#include <algorithm>
#include <set>

#include "flux/base/text.h"
#include "flux/data/blocks/dataset.h"
#include "flux/data/criteo.h"

namespace flux {
namespace {

Status check_criteo(const DataOptions& options) {
  if (options.slots.empty() && options.dense.empty() && !options.weights && options.group.empty() &&
      options.labels == DataOptions().labels)
    return Status::ok();
  return invalid(
      "data: format criteo_tsv has fixed columns; slots, dense, labels, weights and group are for "
      "other formats");
}

Features criteo_features(const DataOptions& options) {
  Features out;
  out.labels = options.labels;
  for (uint32_t i = 1; i <= kCriteoDense; ++i) out.dense_names.push_back(fmt::format("I{}", i));
  for (uint32_t s = 1; s <= kCriteoSlots; ++s) out.slot_names.push_back(fmt::format("C{}", s));
  return out;
}

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

Status check_declared(const DataOptions& options) {
  FLUX_RETURN_IF_ERROR(check_names(options));
  if (options.slots.empty() && options.dense.empty() && !options.key_per_example)
    return invalid("data: format {} needs 'slots' or 'dense': what the records hold",
                   options.format);
  std::vector<std::string> names = {"sid"};
  for (const SlotOptions& slot : options.slots) names.push_back(slot.name);
  if (options.group.empty() || std::find(names.begin(), names.end(), options.group) != names.end())
    return Status::ok();
  return invalid("data.group '{}' is no slot{}; allowed: {}", options.group,
                 did_you_mean(options.group, names), join(names, ", "));
}

Features declared_features(const DataOptions& options) {
  Features out;
  out.labels = options.labels;
  out.dense_names = options.dense;
  out.weights = options.weights;
  for (const SlotOptions& slot : options.slots) out.slot_names.push_back(slot.name);
  out.many_keys = !options.key_per_example;
  return out;
}

constexpr DataFormat kFormats[] = {
    {"criteo_tsv", check_criteo, criteo_features, criteo_format, nullptr, nullptr},
    {"feasign", check_declared, declared_features, feasign_format, nullptr, nullptr},
    {"blocks", check_declared, declared_features, nullptr, scan_block_files, open_block_files},
};

}  // namespace

const std::vector<std::string>& data_formats() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const DataFormat& format : kFormats) out.emplace_back(format.name);
    return out;
  }();
  return names;
}

const DataFormat* find_format(const std::string& name) {
  const auto* at = std::find_if(std::begin(kFormats), std::end(kFormats),
                                [&](const DataFormat& format) { return name == format.name; });
  return at == std::end(kFormats) ? nullptr : at;
}

Features features_of(const DataOptions& options) {
  const DataFormat* format = find_format(options.format);
  FLUX_CHECK(format != nullptr, "data format '{}'", options.format);
  Features out = format->features(options);
  if (options.key_per_example) out.slot_names = {"example"};
  out.slots = static_cast<uint32_t>(out.slot_names.size());
  out.dense = static_cast<uint32_t>(out.dense_names.size());
  return out;
}

}  // namespace flux
