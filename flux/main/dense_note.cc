#include "flux/main/dense_note.h"

#include "flux/base/text.h"
#include "flux/main/pass_data.h"

namespace flux {
namespace {

bool says_transform(const Job& job) {
  const auto text = read_job_file(job.path);
  return text.is_ok() && text.value().find("dense_transform") != std::string::npos;
}

Result<std::vector<uint64_t>> count_below_zero(const std::string& file, DataOptions data) {
  data.shuffle = false;
  data.dense_transform = "none";
  const std::vector<std::string> files = {file};
  FLUX_ASSIGN_OR_RETURN(const Geometry geometry, scan_good(files, data, 1, nullptr));
  FLUX_ASSIGN_OR_RETURN(const auto dataset, Dataset::open(geometry, data));
  std::vector<uint64_t> below(data.dense.size(), 0);
  Batch batch;
  for (uint32_t b = 0; b < geometry.blocks.size(); ++b) {
    FLUX_ASSIGN_OR_RETURN(const auto reader, dataset->open_block(b, 0));
    for (uint32_t j = 0; j < geometry.batches_in(b); ++j) {
      FLUX_RETURN_IF_ERROR(reader->read_batch(j, &batch));
      for (size_t i = 0; i < batch.size; ++i)
        for (size_t c = 0; c < below.size(); ++c)
          below[c] += batch.dense_values[i * batch.dense + c] < 0 ? 1 : 0;
    }
  }
  return below;
}

}  // namespace

Result<std::string> dense_note(const std::string& file, const DataOptions& data, const Job& job) {
  const bool silent = data.dense_transform == "log1p" && data.format != "criteo_tsv";
  if (!silent || data.dense.empty() || says_transform(job)) return std::string();
  FLUX_ASSIGN_OR_RETURN(const auto below, count_below_zero(file, data));
  std::vector<std::string> parts;
  for (size_t c = 0; c < below.size(); ++c)
    if (below[c] > 0)
      parts.push_back(fmt::format("{} of '{}'", with_commas(below[c]), data.dense[c]));
  if (parts.empty()) return std::string();
  return fmt::format(
      "note: dense values below 0 ({}) become 0 by data.dense_transform, whose default is log1p; "
      "say none to keep them, or log1p if that is meant",
      join(parts, ", "));
}

}  // namespace flux
