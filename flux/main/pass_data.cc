#include "flux/main/pass_data.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "flux/base/hash.h"
#include "flux/base/text.h"
#include "flux/data/bad_records.h"
#include "flux/data/tools/global_shuffle.h"
#include "flux/main/pass_files.h"
#include "flux/storage/files.h"

namespace flux {
namespace {

Result<Geometry> scan_apart(std::span<const std::string> files, const DataOptions& options,
                            unsigned threads, const std::atomic<bool>* stop,
                            std::vector<BadRecord>* bad) {
  FLUX_ASSIGN_OR_RETURN(Geometry geometry, Dataset::scan(files, options, threads, stop));
  if (options.bad_records == 0) return geometry;
  FLUX_ASSIGN_OR_RETURN(*bad, set_aside_bad_records(options, threads, stop, &geometry));
  return geometry;
}

// As OUTPUT/bad_records/NAME.tsv.
Status write_bad(const Job& job, const std::string& name, const std::vector<BadRecord>& bad) {
  const std::string folder = job.output + "/bad_records";
  const std::string path = fmt::format("{}/{}.tsv", folder, name);
  if (bad.empty() && !real_files().exists(path)) return Status::ok();
  FLUX_RETURN_IF_ERROR(real_files().make_folders(folder));
  return real_files().write_atomic(path, bad_records_text(bad));
}

Result<Geometry> shuffle_pass(const Job& job, uint32_t pass, Geometry geometry, unsigned threads,
                              const std::atomic<bool>* stop) {
  const std::string made = shuffled_path(job, pass);
  FLUX_RETURN_IF_ERROR(real_files().make_folders(job.output + "/shuffled"));
  // That of the pass before may still be read by a worker that is late. What records were taken
  // from stays known (pass_files.h).
  if (pass >= 2) FLUX_RETURN_IF_ERROR(real_files().remove_all(shuffled_path(job, pass - 2)));
  const uint64_t bad = geometry.bad_records();
  const std::string sources = geometry.to_json();
  FLUX_ASSIGN_OR_RETURN(const WholeData data,
                        WholeData::open_cut(std::move(geometry), job.data, threads));
  const ShuffleOptions options{hash_pair(job.data.seed, pass), job.data.shuffle_memory_mb << 20};
  FLUX_RETURN_IF_ERROR(shuffle_to_blocks(data, made, options, stop));
  FLUX_RETURN_IF_ERROR(real_files().write_atomic(shuffled_sources_path(job, pass), sources));
  FLUX_ASSIGN_OR_RETURN(Geometry shuffled,
                        Dataset::scan({&made, 1}, block_file_options(job.data), threads, stop));
  shuffled.bad_before = bad;
  return shuffled;
}

// The same place, whichever way it is written; what cannot be made absolute stays as it is.
std::string canonical(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path result = std::filesystem::absolute(path, failed);
  return failed ? path : result.lexically_normal().string();
}

// The files that a pass was cut from are needed until it is closed, whatever the job names now.
Status check_all_there(const Job& job, uint32_t pass, const Geometry& frozen) {
  for (const DataFile& file : frozen.files) {
    if (file.records == 0 || real_files().exists(file.path)) continue;  // 0: the vocabulary
    const std::vector<std::string>& now = job.passes[pass].train;
    return error(Code::kNotFound,
                 "{}: is gone, but pass {} was begun with it by an earlier run and is not closed; "
                 "the job names {} now\n"
                 "put the file back until the pass is closed, or start over with --fresh",
                 file.path, job.passes[pass].name, join(now, ", "));
  }
  return Status::ok();
}

// The cut of the job's own files that an open pass was made of; none: it cannot be known any more.
Result<std::optional<Geometry>> own_files_cut(const Job& job, uint32_t pass,
                                              const Geometry& frozen) {
  if (!job.data.global_shuffle) return std::optional<Geometry>(frozen);
  const std::string path = shuffled_sources_path(job, pass);
  if (!real_files().exists(path)) return std::optional<Geometry>();
  FLUX_ASSIGN_OR_RETURN(Geometry cut, read_cut(path));
  return std::optional<Geometry>(std::move(cut));
}

}  // namespace

Result<Geometry> scan_good(std::span<const std::string> files, const DataOptions& options,
                           unsigned threads, const std::atomic<bool>* stop) {
  std::vector<BadRecord> bad;
  return scan_apart(files, options, threads, stop, &bad);
}

Result<Geometry> scan_evaluated(std::span<const std::string> files, const DataOptions& options,
                                unsigned threads, const std::atomic<bool>* stop) {
  std::vector<BadRecord> bad;
  FLUX_ASSIGN_OR_RETURN(Geometry geometry, scan_apart(files, options, threads, stop, &bad));
  std::vector<std::string> why;
  for (const BadRecord& one : bad) why.push_back(one.why.message());
  tell_set_aside(why);
  return geometry;
}

void tell_set_aside(std::span<const std::string> why) {
  constexpr size_t kTold = 10;
  for (size_t i = 0; i < std::min(why.size(), kTold); ++i)
    fmt::print(stderr, "flux: set aside: {}\n", why[i]);
  if (why.size() > kTold)
    fmt::print(stderr, "flux: set aside: {} more records; `flux data validate` names them all\n",
               with_commas(why.size() - kTold));
}

Result<Geometry> cut_test(const Job& job, unsigned threads, const std::atomic<bool>* stop) {
  std::vector<BadRecord> bad;
  DataOptions options = job.data;
  options.shuffle = false;
  FLUX_ASSIGN_OR_RETURN(const auto files, expand_globs(job.test));
  FLUX_ASSIGN_OR_RETURN(Geometry geometry, scan_apart(files, options, threads, stop, &bad));
  FLUX_RETURN_IF_ERROR(write_bad(job, "test", bad));
  return geometry;
}

Result<Geometry> cut_pass(const Job& job, uint32_t pass, std::span<const std::string> files,
                          unsigned threads, const std::atomic<bool>* stop) {
  std::vector<BadRecord> bad;
  FLUX_ASSIGN_OR_RETURN(Geometry geometry, scan_apart(files, job.data, threads, stop, &bad));
  FLUX_RETURN_IF_ERROR(write_bad(job, fmt::format("pass-{:05}", pass), bad));
  if (!job.data.global_shuffle) return geometry;
  return shuffle_pass(job, pass, std::move(geometry), threads, stop);
}

Result<std::string> check_frozen(const Job& job, uint32_t pass, const Geometry& frozen) {
  Geometry wanted = frozen;  // the parts of a cut that the job file decides
  wanted.format = job.data.global_shuffle ? block_file_options(job.data).format : job.data.format;
  wanted.batch_size = job.data.batch_size;
  wanted.shuffle_seed = shuffle_seed_of(job.data);
  const auto differences = geometry_differences(frozen, wanted);
  const std::string& name = job.passes[pass].name;
  if (!differences.empty())
    return invalid(
        "pass {} was begun with another cut of the data:\n  {}\n"
        "set it back until the pass is closed, or start over with --fresh",
        name, join(differences, "\n  "));
  FLUX_RETURN_IF_ERROR(check_all_there(job, pass, frozen));
  FLUX_RETURN_IF_ERROR(Dataset::open(frozen, job.data).status());
  FLUX_ASSIGN_OR_RETURN(const auto own, own_files_cut(job, pass, frozen));
  if (!own) return std::string();
  if (job.data.global_shuffle) {  // what was looked at are the shuffled records
    FLUX_RETURN_IF_ERROR(check_all_there(job, pass, *own));
    FLUX_RETURN_IF_ERROR(Dataset::open(*own, job.data).status());
  }
  FLUX_ASSIGN_OR_RETURN(const auto files, expand_globs(job.passes[pass].train));
  size_t added = 0;
  for (const std::string& path : files)
    added += std::none_of(own->files.begin(), own->files.end(), [&](const DataFile& file) {
      return canonical(file.path) == canonical(path);
    });
  if (added == 0) return std::string();
  return fmt::format("note: {} new file(s) match, but pass {} was cut without them", added, name);
}

}  // namespace flux
