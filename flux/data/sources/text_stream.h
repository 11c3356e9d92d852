// TextStream: the text of a data file from front to back, however it is packed.
//
// Threads: belongs to one thread at a time. Ownership: refers to the ReadFile it was made for,
// which must live longer. Failure: as the packing says, with the path; after a failure only
// text_offset() is of use: the text before it was good, and was written to `out`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "flux/base/status.h"
#include "flux/data/sources/packing.h"
#include "flux/data/sources/pipe_options.h"
#include "flux/storage/read_file.h"

namespace flux {

class TextStream {
 public:
  virtual ~TextStream() = default;
  // Up to `size` bytes of text; fewer only at the end of the text.
  virtual Result<size_t> read(char* out, size_t size) = 0;
  // Of the next byte.
  virtual uint64_t text_offset() const = 0;
  // Bytes of the file that were taken for the text so far; a little more than needed.
  virtual uint64_t file_offset() const = 0;
};

// At the begin of the text. `pipe` counts for Packing::kPipe only.
Result<std::unique_ptr<TextStream>> open_stream(const ReadFile& file, Packing packing,
                                                const PipeOptions& pipe = {});

}  // namespace flux
