#include <glob.h>

#include "flux/data/dataset.h"

namespace flux {

Result<std::vector<std::string>> expand_globs(std::span<const std::string> patterns) {
  std::vector<std::string> paths;
  for (const std::string& pattern : patterns) {
    glob_t found{};
    const int failed = ::glob(pattern.c_str(), GLOB_ERR, nullptr, &found);
    for (size_t i = 0; failed == 0 && i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
    ::globfree(&found);
    if (failed == GLOB_NOMATCH)
      return error(Code::kNotFound, "no file matches '{}'; paths are relative to the current folder",
                   pattern);
    if (failed != 0) return error(Code::kIo, "cannot read the folders of '{}'", pattern);
  }
  return paths;
}

}  // namespace flux
