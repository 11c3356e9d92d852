#include "flux/main/pass_data.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "flux/base/hash.h"
#include "flux/base/text.h"
#include "flux/data/bad_records.h"
#include "flux/data/options.h"
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

// Lines that cannot be read are told before a run with --fresh forgets the model that is there, if
// they are among the first: all of them are parsed only where some may be bad, or to be shuffled.
Status look_at_first_lines(const DataOptions& options, const Geometry& geometry) {
  if (!has_lines(options) || !options.pipe.command.empty() || options.bad_records != 0 ||
      options.global_shuffle || geometry.blocks.empty())
    return Status::ok();
  DataOptions plain = options;
  plain.shuffle = false;
  Geometry in_order = geometry;
  in_order.shuffle_seed = 0;
  FLUX_ASSIGN_OR_RETURN(const auto data, Dataset::open(in_order, plain));
  FLUX_ASSIGN_OR_RETURN(const auto bad, find_bad_records(*data, plain, 0));
  return bad.empty() ? Status::ok() : bad.front().why;
}

// The records of a cut, shuffled, as the block file `made`.
Result<Geometry> shuffle_pass(const Job& job, uint32_t pass, const std::string& made,
                              Geometry geometry, unsigned threads, const std::atomic<bool>* stop) {
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

// The cut of the files that the shuffled records of a pass were taken from; none: it cannot be
// known any more.
Result<std::optional<Geometry>> shuffled_from(const Job& job, uint32_t pass) {
  const std::string path = shuffled_sources_path(job, pass);
  if (!real_files().exists(path)) return std::optional<Geometry>();
  FLUX_ASSIGN_OR_RETURN(Geometry cut, read_cut(path));
  return std::optional<Geometry>(std::move(cut));
}

// What the job file decides of a cut, under the names that it has there: "data.batch: 20, was 10".
std::vector<std::string> changed_settings(const Job& job, uint32_t pass, const Geometry& frozen) {
  std::vector<std::string> out;
  const auto compare = [&](const char* field, const auto& now, const auto& was) {
    if (now != was) out.push_back(fmt::format("{}: {}, was {}", field, now, was));
  };
  const auto shown = [](const std::string& text) { return text.empty() ? "none" : text; };
  const DataOptions& data = job.data;
  // Records that another job shuffled are files as any other.
  const bool shuffled =
      is_shuffled(frozen) && !names_place(job.passes[pass].train, frozen.files[0].path);
  compare("data.global_shuffle", data.global_shuffle, shuffled);
  if (!data.global_shuffle && !shuffled) {
    compare("data.format", data.format, frozen.format);
    compare("data.pipe", shown(pipe_text(data.pipe)), shown(frozen.pipe));
  }
  compare("data.batch", data.batch_size, frozen.batch_size);
  compare("data.shuffle", data.shuffle, frozen.shuffle_seed != 0);
  if (data.shuffle && frozen.shuffle_seed != 0)
    compare("seed", shuffle_seed_of(data), frozen.shuffle_seed);
  return out;
}

Status check_settings(const Job& job, uint32_t pass, const Geometry& frozen) {
  const std::vector<std::string> changed = changed_settings(job, pass, frozen);
  if (!changed.empty())
    return invalid(
        "pass {} was begun with another cut of the data:\n  {}\n"
        "set it back until the pass is closed, or start over with --fresh",
        job.passes[pass].name, join(changed, "\n  "));
  if (frozen.bad_records() > job.data.bad_records)
    return invalid(
        "pass {} was begun with {} set aside, data.bad_records is {} now\n"
        "set it back until the pass is closed, or mend the data and start over with --fresh",
        job.passes[pass].name, counted(frozen.bad_records(), "bad record"), job.data.bad_records);
  return Status::ok();
}

// The files of an open pass: are they there, as they were, and does the job still mean them?
Status check_own_files(const Job& job, uint32_t pass, const Geometry& cut) {
  FLUX_RETURN_IF_ERROR(check_all_there(job, pass, cut));
  const std::vector<std::string>& now = job.passes[pass].train;
  for (const DataFile& file : cut.files)
    if (file.records != 0 && !names_place(now, file.path))
      return invalid(
          "pass {} was begun with {} and is not closed, but the job names {} now\n"
          "name the file until the pass is closed and add a pass for other data behind it; or give "
          "the job another folder with --set output=DIR, or start over with --fresh",
          job.passes[pass].name, file.path, join(now, ", "));
  return Dataset::open(cut, job.data).status();
}

Result<std::string> note_new_files(const Job& job, uint32_t pass, const Geometry& cut) {
  FLUX_ASSIGN_OR_RETURN(const auto files, expand_globs(job.passes[pass].train));
  const auto is_new = [&](const std::string& path) {
    return std::none_of(cut.files.begin(), cut.files.end(),
                        [&](const DataFile& file) { return names_place({path}, file.path); });
  };
  const auto added = std::count_if(files.begin(), files.end(), is_new);
  if (added == 0) return std::string();
  return fmt::format("note: {} new file(s) match, but pass {} was cut without them", added,
                     job.passes[pass].name);
}

// Ok if the shuffled records are there as they were cut. Only if somebody wrote to the file since
// are all of them read, and so held against their check sums.
Status read_shuffled(const Job& job, const Geometry& frozen, unsigned threads) {
  FLUX_ASSIGN_OR_RETURN(const auto data, Dataset::open(frozen, job.data));
  if (data->geometry().files[0].modified_ns == frozen.files[0].modified_ns) return Status::ok();
  FLUX_ASSIGN_OR_RETURN(const WholeData all,
                        WholeData::open_cut(frozen, block_file_options(job.data), threads));
  return all.read([](const Batch& /*batch*/) { return Status::ok(); });
}

// From the files as they were cut, or, if that is not known any more, as they are now. Records in
// another order would be trained twice or never: they are taken only if they are the same.
Result<std::string> shuffle_again(const Job& job, uint32_t pass, const Geometry& frozen,
                                  const std::optional<Geometry>& own, const Status& why,
                                  unsigned threads) {
  const std::string& path = frozen.files[0].path;
  Geometry source;
  if (own) {
    source = *own;
  } else {
    std::vector<BadRecord> bad;
    FLUX_ASSIGN_OR_RETURN(const auto files, expand_globs(job.passes[pass].train));
    FLUX_ASSIGN_OR_RETURN(source, scan_apart(files, job.data, threads, nullptr, &bad));
  }
  FLUX_ASSIGN_OR_RETURN(const Geometry again,
                        shuffle_pass(job, pass, path, std::move(source), threads, nullptr));
  if (again.hash() == frozen.hash() && again.files[0].content == frozen.files[0].content)
    return fmt::format("note: {} was lost or damaged and is made again", path);
  FLUX_RETURN_IF_ERROR(real_files().remove_all(path));
  if (!own) FLUX_RETURN_IF_ERROR(real_files().remove_all(shuffled_sources_path(job, pass)));
  return invalid(
      "{}\nthe shuffled records of pass {} were made again, but are not those that it was begun "
      "with: its files are others now, or data.shuffle_memory_mb is\n"
      "set them back until the pass is closed, put a copy of {} back, or start over with --fresh",
      why.message(), job.passes[pass].name, path);
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
  why.reserve(bad.size());
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
  FLUX_RETURN_IF_ERROR(look_at_first_lines(job.data, geometry));
  FLUX_RETURN_IF_ERROR(write_bad(job, fmt::format("pass-{:05}", pass), bad));
  if (!job.data.global_shuffle) return geometry;
  return shuffle_pass(job, pass, shuffled_path(job, pass), std::move(geometry), threads, stop);
}

Result<std::string> check_frozen(const Job& job, uint32_t pass, const Geometry& frozen,
                                 unsigned threads) {
  FLUX_RETURN_IF_ERROR(check_settings(job, pass, frozen));
  if (!job.data.global_shuffle) {
    FLUX_RETURN_IF_ERROR(check_own_files(job, pass, frozen));
    return note_new_files(job, pass, frozen);
  }
  FLUX_ASSIGN_OR_RETURN(const auto own, shuffled_from(job, pass));
  if (own) FLUX_RETURN_IF_ERROR(check_own_files(job, pass, *own));
  const Status whole = read_shuffled(job, frozen, threads);
  if (!whole.is_ok()) return shuffle_again(job, pass, frozen, own, whole, threads);
  return own ? note_new_files(job, pass, *own) : std::string();
}

}  // namespace flux
