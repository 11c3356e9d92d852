// Zstd text: read from front to back, or from a frame on.
//
// A zstd frame can only be read from its begin, so frames are the entry points. find_zstd_points()
// finds them without unpacking anything: from the table at the end of a seekable file, or from the
// heads of frames that say how much text they hold.
// Threads: a ZstdStream belongs to one thread. Failure: kCorrupt with path and byte for a damaged
// or cut file; kInvalid for a window above kZstdWindowBytesMax, or a dictionary.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "flux/base/status.h"
#include "flux/data/sources/text_stream.h"
#include "flux/storage/read_file.h"

namespace flux {

constexpr int kZstdWindowLogMax = 27;
constexpr uint64_t kZstdWindowBytesMax = 1ULL
                                         << kZstdWindowLogMax;  // memory that a reader may need

struct ZstdPoint {
  uint64_t text = 0;  // offset of a frame's text
  uint64_t file = 0;  // offset of the frame
};

class ZstdStream final : public TextStream {
 public:
  explicit ZstdStream(const ReadFile& file, const ZstdPoint& point = {});
  ~ZstdStream() override;
  ZstdStream(const ZstdStream&) = delete;
  ZstdStream& operator=(const ZstdStream&) = delete;

  Result<size_t> read(char* out, size_t size) override;
  uint64_t text_offset() const override { return text_; }
  uint64_t file_offset() const override { return fetched_ - (input_.size() - used_); }

 private:
  struct Decoder;
  Status refill();
  Status begin_frame();
  Status end_frame() const;
  Status corrupt(std::string_view what) const;
  Status refused(size_t code) const;

  const ReadFile& file_;
  const std::unique_ptr<Decoder> decoder_;
  std::vector<char> input_;
  size_t used_ = 0;       // bytes of input_ that were taken
  uint64_t fetched_ = 0;  // bytes of the file that were read into input_
  uint64_t text_ = 0;
  bool in_frame_ = false;
  uint64_t frame_text_ = 0;      // offset of the frame's text
  uint64_t frame_promised_ = 0;  // bytes of text that its head says, or ZSTD_CONTENTSIZE_UNKNOWN
};

// Ascending, the first is the begin of the file; at most one for each `apart` bytes of text. Frames
// behind one that does not say how much text it holds are not found. Never fails: a damaged file
// has fewer.
std::vector<ZstdPoint> find_zstd_points(const ReadFile& file, uint64_t apart);

}  // namespace flux
