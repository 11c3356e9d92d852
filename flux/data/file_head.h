// The beginning of a text file, plain or packed: for those who look at what a file is before it is
// read. Failure: as ReadFile and TextStream, unless a whole line comes before it: who reads on will
// find it, and who does not need not know.
#pragma once

#include <string>

#include "flux/base/status.h"
#include "flux/data/sources/pipe_options.h"

namespace flux {

// At most the first `bytes_max` bytes of the text.
Result<std::string> read_file_head(const std::string& path, size_t bytes_max,
                                   const PipeOptions& pipe = {});

}  // namespace flux
