#include "flux/main/pass_files.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fnmatch.h>

#include "flux/base/text.h"
#include "flux/data/dataset.h"
#include "flux/storage/files.h"

namespace flux {
namespace {

namespace fs = std::filesystem;

// The same place, whichever way it is written; what cannot be made absolute stays as it is.
std::string canonical(const std::string& path) {
  std::error_code failed;
  const fs::path result = fs::absolute(path, failed);
  return failed ? path : result.lexically_normal().string();
}

bool matches(const std::string& pattern, const std::string& path) {
  return pattern == path || ::fnmatch(pattern.c_str(), path.c_str(), FNM_PATHNAME) == 0;
}

std::string base_name(const std::string& path) {
  return fs::path(path).filename().string();
}

// A file of this name and size that `pattern` finds in another folder; also if it finds nothing.
bool may_be_moved(const std::string& pattern, const DataFile& file) {
  if (!matches(base_name(pattern), base_name(file.path))) return false;
  const auto found = expand_globs({&pattern, 1});
  if (!found.is_ok()) return true;
  return std::any_of(found.value().begin(), found.value().end(), [&](const std::string& path) {
    std::error_code failed;
    return base_name(path) == base_name(file.path) && fs::file_size(path, failed) == file.bytes &&
           !failed;
  });
}

// Old data is often packed.
std::string unpacked(const std::string& path) {
  for (const std::string_view suffix : {".gz", ".zst"})
    if (path.ends_with(suffix)) return path.substr(0, path.size() - suffix.size());
  return path;
}

bool names_closed(const std::vector<std::string>& patterns, const DataFile& file) {
  if (file.records == 0 || names_place(patterns, file.path)) return true;  // 0: the vocabulary
  for (const std::string& pattern : patterns)
    if (matches(canonical(unpacked(pattern)), canonical(unpacked(file.path)))) return true;
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return may_be_moved(pattern, file); });
}

// The cut of the job's own files that a closed pass was made of.
Result<Geometry> closed_cut(const Job& job, uint32_t pass, const ClosedPass& closed) {
  FLUX_ASSIGN_OR_RETURN(Geometry cut,
                        read_cut(fmt::format("{}/geometry/pass-{:05}.json", job.output, pass)));
  if (cut.hash() != closed.geometry) return error(Code::kStale, "the cut of another life");
  if (is_shuffled(cut)) return read_cut(shuffled_sources_path(job, pass));
  return cut;
}

}  // namespace

std::string shuffled_path(const Job& job, uint32_t pass) {
  return fmt::format("{}/shuffled/pass-{:05}.blocks", job.output, pass);
}

std::string shuffled_sources_path(const Job& job, uint32_t pass) {
  return fmt::format("{}/shuffled/pass-{:05}.sources.json", job.output, pass);
}

bool is_shuffled(const Geometry& cut) {
  if (cut.format != "blocks" || cut.files.size() != 1) return false;
  const fs::path path = cut.files[0].path;
  return path.parent_path().filename() == "shuffled" &&
         matches("pass-[0-9][0-9][0-9][0-9][0-9]*.blocks", path.filename().string());
}

Result<Geometry> read_cut(const std::string& path) {
  constexpr uint64_t kCutMax = 1ULL << 30;
  FLUX_ASSIGN_OR_RETURN(const std::string text, real_files().read(path, kCutMax));
  auto cut = Geometry::from_json(text);
  return cut.is_ok() ? std::move(cut) : cut.status().with_context(path);
}

bool names_place(const std::vector<std::string>& patterns, const std::string& path) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    if (matches(canonical(pattern), canonical(path))) return true;
    std::error_code failed;  // through a link
    return fs::equivalent(pattern, path, failed) && !failed;
  });
}

Status check_closed_passes(const Job& job, const std::vector<ClosedPass>& closed) {
  for (uint32_t p = 0; p < closed.size() && p < job.passes.size(); ++p) {
    const auto cut = closed_cut(job, p, closed[p]);
    if (!cut.is_ok()) continue;
    const std::vector<std::string>& now = job.passes[p].train;
    for (const DataFile& file : cut.value().files)
      if (!names_closed(now, file))
        return invalid(
            "pass {} was closed with {}, but the job names {} for it now, which would not be "
            "trained\npasses that are closed stay in the list with the files that they had, which "
            "may be gone: set them back and add a pass for new data behind them; or give the job "
            "another folder with --set output=DIR, or start over with --fresh",
            closed[p].name, file.path, join(now, ", "));
  }
  return Status::ok();
}

}  // namespace flux
