// The beginning of a text file, plain or packed: for those who look at what a file is before it is
// read. Failure: as ReadFile and GzipStream.
#pragma once

#include <string>

#include "flux/base/status.h"

namespace flux {

// At most the first `bytes_max` bytes of the text.
Result<std::string> read_file_head(const std::string& path, size_t bytes_max);

}  // namespace flux
