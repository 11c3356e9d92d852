#include "flux/data/options.h"

#include <algorithm>
#include <set>

#include <glob.h>
#include <sys/stat.h>

#include "flux/base/text.h"
#include "flux/data/feature_check.h"

namespace flux {

namespace {

const std::vector<std::string>& formats() {
  static const std::vector<std::string> names = {"criteo_tsv", "feasign", "sentences"};
  return names;
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

Status check_feasign(const DataOptions& options) {
  FLUX_RETURN_IF_ERROR(check_names(options));
  if (options.slots.empty() && options.dense.empty() && !options.key_per_example)
    return invalid("data: format feasign needs 'slots' or 'dense': what the lines hold");
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

// What only feasign has.
Status check_fixed(const DataOptions& options) {
  if (options.slots.empty() && options.dense.empty() && !options.weights && options.group.empty() &&
      options.slices.empty() && options.labels == DataOptions().labels)
    return Status::ok();
  return invalid(
      "data: format {} has fixed columns; slots, dense, labels, weights, group and metrics.slices "
      "are "
      "for format feasign",
      options.format);
}

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

}  // namespace

Status check_data_options(const DataOptions& options) {
  const std::string transforms[] = {"log1p", "none"};
  if (std::find(formats().begin(), formats().end(), options.format) == formats().end())
    return invalid("data format '{}' is not known; allowed: {}{}", options.format,
                   join(formats(), ", "), did_you_mean(options.format, formats()));
  if (options.dense_transform != transforms[0] && options.dense_transform != transforms[1])
    return invalid("dense_transform '{}' is not known; allowed: log1p, none{}",
                   options.dense_transform, did_you_mean(options.dense_transform, transforms));
  if (options.batch_size == 0 || options.batch_size > kBatchSizeMax)
    return invalid("batch_size {} is out of range; allowed: 1 to {}", options.batch_size,
                   kBatchSizeMax);
  if (options.format == "sentences") return check_sentences(options);
  FLUX_RETURN_IF_ERROR(check_no_words(options));
  FLUX_RETURN_IF_ERROR(options.format == "feasign" ? check_feasign(options) : check_fixed(options));
  const std::vector<FeatureMistake> mistakes = feature_mistakes(options);
  if (!mistakes.empty())
    return invalid("data.features: feature '{}': {}", options.features[mistakes[0].feature].name,
                   mistakes[0].what);
  if (options.key_per_example && !options.features.empty())
    return invalid(
        "data: key_per_example replaces all sparse features; it goes with no 'features'");
  return Status::ok();
}

namespace {

// Whether the keys of a slot or feature have values: their own, or those of what they are made of.
bool has_values(const DataOptions& options, const std::string& name) {
  for (const SlotOptions& slot : options.slots)
    if (slot.name == name) return slot.values;
  for (const FeatureOptions& feature : options.features)
    if (feature.name == name && !find_feature(feature.op)->reads_numbers)
      return std::any_of(feature.of.begin(), feature.of.end(),
                         [&](const std::string& source) { return has_values(options, source); });
  return false;
}

}  // namespace

Features features_of(const DataOptions& options) {
  Features out;
  out.labels = options.labels;
  out.weights = options.weights;
  out.many_keys = options.format != "criteo_tsv" && !options.key_per_example;
  if (options.format == "sentences") out.labels.clear();
  out.dense = static_cast<uint32_t>(raw_numbers(options).size());
  std::vector<std::string> names = raw_slots(options);
  for (const FeatureOptions& feature : options.features) {
    const FeatureDef* def = find_feature(feature.op);
    if (def != nullptr && def->makes_numbers)
      ++out.dense;
    else
      names.push_back(feature.name);
  }
  if (options.key_per_example) names = {"example"};
  for (const std::string& name : names) {
    if (std::find(options.hidden.begin(), options.hidden.end(), name) != options.hidden.end())
      continue;
    out.slot_names.push_back(name);
    out.values = out.values || (!options.key_per_example && has_values(options, name));
  }
  out.slots = static_cast<uint32_t>(out.slot_names.size());
  return out;
}

uint64_t shuffle_seed_of(const DataOptions& options) {
  if (!options.shuffle) return 0;
  return options.seed != 0 ? options.seed : ~0ULL;
}

Result<std::vector<std::string>> expand_globs(std::span<const std::string> patterns) {
  std::vector<std::string> out;
  for (const std::string& pattern : patterns) {
    struct stat st = {};
    if (::stat(pattern.c_str(), &st) == 0) {  // a name that is there is meant as it is written
      out.push_back(pattern);
      continue;
    }
    glob_t found = {};
    const int rc = ::glob(pattern.c_str(), GLOB_NOSORT | GLOB_ERR, nullptr, &found);
    std::vector<std::string> names(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    ::globfree(&found);
    if (rc == GLOB_NOMATCH)
      return error(Code::kNotFound,
                   "{}: no file matches; check the path (from the directory where "
                   "flux was started)",
                   pattern);
    if (rc != 0) return error(Code::kIo, "{}: a directory on this path cannot be read", pattern);
    std::sort(names.begin(), names.end());
    out.insert(out.end(), names.begin(), names.end());
  }
  return out;
}

}  // namespace flux
