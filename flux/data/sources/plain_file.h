// PlainFile: the text of a file that is not packed, held against what the scan saw of it.
//
// A file is opened for every read, as it may be one of very many. One whose time of change is
// another than before is read whole once more: the same text written anew may stay.
// Threads: any; who finds a new time makes the others wait until it is looked into.
// Failure: kInvalid if the file is not what the scan saw, else as ReadFile.
#pragma once

#include <mutex>

#include "flux/data/sources/text_file.h"

namespace flux {

// Of text that is hashed at once; the hash of a file is made of those of its chunks.
constexpr uint64_t kHashedBytes = 256 << 10;
// The hash of a text with one more chunk; 0 is that of no text.
uint64_t add_chunk_hash(uint64_t before, uint64_t chunk);

class PlainFile final : public TextFile {
 public:
  // `file` is as it was when a Dataset was opened.
  explicit PlainFile(const DataFile& file);
  Status read(uint64_t begin, size_t size, char* out) override;

 private:
  Status check(const ReadFile& file);

  const std::string path_;
  const uint64_t bytes_, content_;
  std::mutex mutex_;
  uint64_t modified_ns_;  // when it had the content that the scan saw; under mutex_
};

}  // namespace flux
