#include "flux/data/options.h"

#include <algorithm>

#include <glob.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "flux/base/text.h"
#include "flux/data/feature_check.h"
#include "flux/data/format.h"

namespace flux {
namespace {

Status check_pipe(const DataOptions& options, const DataFormat& format) {
  const std::vector<std::string>& command = options.pipe.command;
  if (command.empty()) return Status::ok();
  if (format.lines == nullptr)
    return invalid("data.pipe makes text, which format {} is not; leave it out", options.format);
  if (command[0].empty()) return invalid("data.pipe: its first word, the program, is empty");
  for (const std::string& word : command)
    if (word.find('\0') != std::string::npos)
      return invalid("data.pipe: '{}...' has a NUL byte in it", word.c_str());
  return Status::ok();
}

}  // namespace

std::string pipe_text(const PipeOptions& pipe) {
  if (pipe.command.empty()) return "";
  return nlohmann::json(pipe.command)
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Status check_data_options(const DataOptions& options) {
  const std::string transforms[] = {"log1p", "none"};
  const DataFormat* format = find_format(options.format);
  if (format == nullptr)
    return invalid("data format '{}' is not known; allowed: {}{}", options.format,
                   join(data_formats(), ", "), did_you_mean(options.format, data_formats()));
  if (options.dense_transform != transforms[0] && options.dense_transform != transforms[1])
    return invalid("dense_transform '{}' is not known; allowed: log1p, none{}",
                   options.dense_transform, did_you_mean(options.dense_transform, transforms));
  if (options.batch_size == 0 || options.batch_size > kBatchSizeMax)
    return invalid("batch_size {} is out of range; allowed: 1 to {}", options.batch_size,
                   kBatchSizeMax);
  FLUX_RETURN_IF_ERROR(check_pipe(options, *format));
  FLUX_RETURN_IF_ERROR(format->check(options));
  if (options.global_shuffle && (options.format == "sentences" || !options.slices.empty()))
    return invalid("data.global_shuffle does not go with {}",
                   options.format == "sentences" ? "format sentences" : "metrics.slices");
  if (options.bad_records > 0 && options.format == "blocks")
    return invalid(
        "data.bad_records is not for format blocks, whose records were checked when they were "
        "written; set bad ones aside where they come from");
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
  out.many_keys = options.format != "criteo_tsv" && !options.one_key && !options.key_per_example;
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

bool has_lines(const DataOptions& options) {
  const DataFormat* format = find_format(options.format);
  return format != nullptr && format->lines != nullptr;
}

uint32_t header_lines_of(const DataOptions& options) {
  return options.format == "csv" && options.csv.header ? 1 : 0;
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
