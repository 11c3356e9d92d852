// Packing: how the text of a data file is packed, found by its first bytes.
//
// Plain values and pure functions. Failure: kIo; kCorrupt when a file is not what its name says;
// kInvalid, with what to do, when it is no text but packed in a way that is not read (xz, bzip2,
// lz4, zip), Parquet, a block file or UTF-16.
#pragma once

#include <cstdint>
#include <string_view>

#include "flux/base/status.h"
#include "flux/storage/read_file.h"

namespace flux {

enum class Packing : uint8_t {
  kPlain = 0,
  kGzip = 1,
  kZstd = 2,
  kPipe = 3,     // the text is what a command makes of the file's bytes
  kColumns = 4,  // no text: offsets of blocks are numbers of records
};

const char* packing_name(Packing packing);  // "plain text", "gzip", "zstd", "the output of a pipe",
                                            // "columns"

// By the first bytes. A file named .gz or .zst (or .zstd) that begins otherwise is refused.
Result<Packing> find_packing(const ReadFile& file);
// By the end of a name: how a file of this name is written.
Packing packing_by_name(std::string_view path);

}  // namespace flux
