// Some lines of data files, to look at a job without reading all of its data.
//
// Lines are taken from the beginnings of up to 16 files, spread over the list; plain and packed
// files alike, through the pipe of the job if it has one. What the rest holds is estimated from
// bytes per line. Failure: kNotFound, kIo or kCorrupt with the file's name.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "flux/base/status.h"
#include "flux/data/sources/pipe_options.h"

namespace flux {

struct SampledText {
  uint64_t lines = 0;         // that were copied
  uint64_t lines_in_all = 0;  // of all files; an estimate unless `whole`
  uint64_t file_bytes = 0;    // on disk, all files
  bool whole = false;         // every line was copied
};

// Copies at most `lines_max` lines of `files` to the new file `out`.
Result<SampledText> sample_text(std::span<const std::string> files, const PipeOptions& pipe,
                                uint64_t lines_max, const std::string& out);

}  // namespace flux
