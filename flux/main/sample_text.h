// Some records of data files, to look at a job without reading all of its data.
//
// They are taken from the beginnings of up to 16 files, spread over the list: as lines, of plain
// and packed files alike, through the pipe of the job if it has one; of formats without lines
// (block files, Parquet) as a block file. What the rest holds is estimated from bytes per line.
// Failure: kNotFound, kIo or kCorrupt with the file's name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/data/dataset.h"
#include "flux/data/sources/pipe_options.h"

namespace flux {

// Lines of a sample that come from one file; numbers from 1. Of formats without lines: 0 lines.
struct SamplePiece {
  std::string path;
  uint64_t lines = 0;
  uint64_t first_in_sample = 1, first_in_file = 1;
  size_t file = 0;  // index of those that were sampled
};

struct SampledText {
  uint64_t lines = 0;         // that were copied, without headers
  uint64_t lines_in_all = 0;  // of all files; an estimate unless `whole`
  uint64_t file_bytes = 0;    // on disk, all files
  bool whole = false;         // every line was copied
  std::vector<SamplePiece> pieces;
  // Of formats without lines: what is wrong with the records that were passed over.
  std::vector<std::string> set_aside;
};

// Copies at most `lines_max` lines of `files` to the new file `out`. `headers`: the first line of
// each file is none of them; that of the first file is copied.
Result<SampledText> sample_text(std::span<const std::string> files, const PipeOptions& pipe,
                                bool headers, uint64_t lines_max, const std::string& out);

// Copies at most `records_max` records of `files` to the new file `out`, and says in *options,
// which read the files, how it is read. Bad records are passed over as far as options->bad_records
// allows.
Result<SampledText> sample_records(std::span<const std::string> files, uint64_t records_max,
                                   const std::string& out, DataOptions* options);

// Where line `line` of a sample comes from; null: from nowhere.
const SamplePiece* piece_of_line(const SampledText& taken, uint64_t line);

// A message about the file `sample` in terms of the files that it was taken from, which are those
// that a person knows: "SAMPLE:7:2: ..." becomes "day_3.txt:5:2: ...".
std::string in_own_files(const SampledText& taken, const std::string& sample,
                         const std::string& message);

}  // namespace flux
