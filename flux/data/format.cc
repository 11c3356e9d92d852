#include "flux/data/format.h"

#include <algorithm>
#include <set>

#include "flux/base/text.h"
#include "flux/data/blocks/dataset.h"
#include "flux/data/parquet/dataset.h"

namespace flux {
namespace {

// What only sentences have.
Status check_no_words(const DataOptions& options) {
  const DataOptions plain;
  if (options.vocabulary.empty() && options.negatives == plain.negatives &&
      options.subsample == plain.subsample)
    return Status::ok();
  return invalid(
      "data: vocabulary, negatives and subsample are for format sentences, not for format {}",
      options.format);
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

// Formats whose records hold what the job declares.
Status check_declared(const DataOptions& options) {
  FLUX_RETURN_IF_ERROR(check_no_words(options));
  FLUX_RETURN_IF_ERROR(check_names(options));
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

Status check_blocks(const DataOptions& options) {
  FLUX_RETURN_IF_ERROR(check_declared(options));
  if (!options.slices.empty() || options.raw_keys)
    return invalid("data: metrics.slices and raw_keys are for format feasign, not for blocks");
  return Status::ok();
}

Status check_parquet(const DataOptions& options) {
  FLUX_RETURN_IF_ERROR(check_declared(options));
  if (!options.slices.empty())
    return invalid("data: metrics.slices are for format feasign, not for parquet");
  return Status::ok();
}

// What fixed formats have not.
Status check_fixed(const DataOptions& options) {
  if (options.slots.empty() && options.dense.empty() && !options.weights && options.group.empty() &&
      options.slices.empty() && !options.raw_keys && options.labels == DataOptions().labels)
    return Status::ok();
  return invalid(
      "data: format {} has fixed columns; slots, dense, labels, weights, group, raw_keys and "
      "metrics.slices are for other formats",
      options.format);
}

Status check_criteo(const DataOptions& options) {
  FLUX_RETURN_IF_ERROR(check_no_words(options));
  return check_fixed(options);
}

Status check_sentences(const DataOptions& options) {
  FLUX_RETURN_IF_ERROR(check_fixed(options));
  if (options.key_per_example || !options.features.empty())
    return invalid("data: key_per_example and features are not for format sentences");
  if (options.vocabulary.empty())
    return invalid(
        "data: format sentences needs 'vocabulary': a file of words and their counts, made by "
        "flux data vocab");
  return Status::ok();
}

Result<std::unique_ptr<const BlockFormat>> criteo_lines(const DataOptions& options) {
  return criteo_format(options);
}
Result<std::unique_ptr<const BlockFormat>> feasign_lines(const DataOptions& options) {
  return feasign_format(options);
}

constexpr DataFormat kFormats[] = {
    {"criteo_tsv", check_criteo, criteo_lines, nullptr, nullptr},
    {"feasign", check_declared, feasign_lines, nullptr, nullptr},
    {"sentences", check_sentences, sentence_format, nullptr, nullptr},
    {"blocks", check_blocks, nullptr, scan_block_files, open_block_files},
    {"parquet", check_parquet, nullptr, scan_parquet_files, open_parquet_files},
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

}  // namespace flux
