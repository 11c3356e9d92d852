// TextFile: reads of a data file's text from any place, however it is packed.
//
// Plain text is read where it is asked for; gzip is entered where it was passed before (gzip.h);
// zstd is entered at a frame near the place. What cannot be entered nearby (one large zstd frame, a
// command's output) is read by a stream that stays open at the end of the last read, and its blocks
// are leased in order (DataFile::in_order), so that a pass unpacks everything once. Readers that
// come a little out of order are served from the text that was passed over, of which at most
// kPassedBytesMax is kept. TextFiles keeps at most kKeptMax such streams; who comes back to another
// file begins it anew.
// The output of a command is not put into a file: a pass would need disk for all of its text.
// Threads: any; reads through one stream wait for each other.
// Failure: as the packing says; kInvalid if the text is not what the scan saw.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/data/geometry.h"
#include "flux/data/sources/packing.h"
#include "flux/data/sources/pipe_options.h"
#include "flux/storage/read_file.h"

namespace flux {

constexpr uint64_t kNearBytes = 16 << 20;  // of text that may be unpacked in vain for a read

// Whether there is text that lies further than kNearBytes behind every entry. (All of a shorter one
// is kept once it was passed over, so that it may be read in any order.)
bool reads_in_order(const ReadFile& file, Packing packing, uint64_t text_bytes);

class TextFile {
 public:
  virtual ~TextFile() = default;
  // Fills out[0, size) with the text from `begin`.
  virtual Status read(uint64_t begin, size_t size, char* out) = 0;
  // Whether a stream stays open behind a read, which drop() would close.
  virtual bool keeps_stream() const { return false; }
  // Closes it, unless a read is going on.
  virtual void drop() {}
};

class TextFiles {
 public:
  static constexpr uint64_t kPassedBytesMax = 32 << 20;
  static constexpr size_t kKeptMax = 4;

  TextFiles(const Geometry& geometry, const PipeOptions& pipe);
  // Fills out[0, end - begin) with the text of a block, as the scan saw it.
  Status read(const DataBlock& block, char* out) const;

 private:
  void touch(uint32_t file) const;

  const uint32_t batch_size_;
  std::vector<std::unique_ptr<TextFile>> files_;
  std::vector<std::string> names_;  // of the files, for messages
  mutable std::mutex mutex_;
  mutable std::list<uint32_t> kept_;  // files with open streams, the last used first; under mutex_
};

}  // namespace flux
