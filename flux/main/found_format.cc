#include "flux/main/found_format.h"

#include <cstdio>

#include <fmt/format.h>

#include "flux/data/blocks/block_file.h"
#include "flux/data/parquet/parquet_file.h"
#include "flux/data/tools/guess_format.h"
#include "flux/job/format_auto.h"
#include "flux/storage/read_file.h"

namespace flux {
namespace {

// Block files and Parquet need no word of the job.
bool says_it_itself(const std::string& path) {
  const auto file = ReadFile::open(path);
  return file.is_ok() &&
         (BlockFile::looks_like_one(file.value()) || ParquetFile::looks_like_one(file.value()));
}

Result<std::vector<std::string>> asked_files(const Job& job, const FormatOf& of) {
  const std::vector<std::string>& evaluated = of.input.empty() ? job.test : of.input;
  if (of.evaluated && !evaluated.empty()) {
    FLUX_ASSIGN_OR_RETURN(auto files, expand_globs(evaluated));
    if (!says_it_itself(files.at(0))) return files;
  }
  return expand_globs(job.passes.at(0).train);
}

}  // namespace

Result<std::optional<Override>> found_format(const Job& job, const FormatOf& of) {
  if (job.data.format != kFormatAuto) return std::optional<Override>();
  FLUX_ASSIGN_OR_RETURN(const auto files, asked_files(job, of));
  std::string note;  // of what the job does not read
  const auto guess = guess_data_options(files.at(0), &note);
  if (!guess.is_ok())
    return invalid("data.format is auto, but it cannot be known: {}\nor say it: data.format",
                   guess.status().message());
  const std::string& format = guess.value().format;
  fmt::print(stderr, "data.format auto: the lines of {} are {}\n", files[0], format);
  if (guess.value().raw_keys && !job.data.raw_keys)
    fmt::print(stderr,
               "note: the keys of {} are as large as those that flux data convert writes; if they "
               "come from it, say data.raw_keys: true\n",
               files[0]);
  return std::optional<Override>(Override{"data.format", format});
}

Result<Job> load_job_with_format(const std::string& path, std::vector<Override> overrides,
                                 const FormatOf& of) {
  FLUX_ASSIGN_OR_RETURN(Job job, load_job(path, overrides));
  FLUX_ASSIGN_OR_RETURN(auto found, found_format(job, of));
  if (!found) return job;
  overrides.push_back(*std::move(found));
  return load_job(path, overrides);
}

}  // namespace flux
