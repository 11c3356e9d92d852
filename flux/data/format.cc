#include "flux/data/format.h"

#include <algorithm>

#include "flux/data/blocks/dataset.h"
#include "flux/data/format_check.h"
#include "flux/data/parquet/dataset.h"
#include "flux/data/text/formats.h"

namespace flux {
namespace {

Status check_blocks(const DataOptions& options) {
  FLUX_RETURN_IF_ERROR(check_declared(options, {}));
  if (!options.slices.empty() || options.raw_keys)
    return invalid("data: metrics.slices and raw_keys are for text formats, not for blocks");
  return Status::ok();
}

Status check_parquet(const DataOptions& options) {
  FLUX_RETURN_IF_ERROR(check_declared(options, {}));
  if (!options.slices.empty())
    return invalid("data: metrics.slices are for text formats, not for parquet");
  return Status::ok();
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
constexpr DataFormat kFormats[] = {
    {"criteo_tsv", check_criteo, criteo_lines, nullptr, nullptr},
    {"feasign", check_feasign, feasign_lines, nullptr, nullptr},
    {"multislot", check_multislot, multislot_lines, nullptr, nullptr},
    {"libsvm", check_libsvm, libsvm_lines, nullptr, nullptr},
    {"libffm", check_libffm, libffm_lines, nullptr, nullptr},
    {"vw", check_vw, vw_lines, nullptr, nullptr},
    {"csv", check_csv, csv_lines, nullptr, nullptr},
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
