// Reading gzip text from the middle. A deflate stream can be entered at the border of one of its
// blocks if the 32 KiB of text before are known; GzipFile collects such entry points at the cuts it
// was given while it inflates, so that each part of the text is inflated about once per pass.
//
// Threads: a GzipStream belongs to one thread; GzipFile::read() may be called from many.
// Failure: kCorrupt with path and byte for a damaged or cut file. Check sums are verified only by a
// stream that starts at a member's head (as scan does), not behind an entry point.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <zlib.h>

#include "flux/base/status.h"
#include "flux/data/sources/text_stream.h"
#include "flux/storage/read_file.h"

namespace flux {

// Where inflating can start. The default is the head of the file.
struct GzipPoint {
  uint64_t text = 0;                  // offset in the text
  uint64_t file = 0;                  // offset in the file of the first whole byte
  int bits = 0;                       // bits of the byte before that belong to the block
  bool raw = false;                   // inside a member: no header follows
  std::vector<unsigned char> window;  // text before, at most 32 KiB
};

// One inflating pass over a file of one or more members.
class GzipStream final : public TextStream {
 public:
  // `track`: remember the last entry point that was passed.
  GzipStream(const ReadFile& file, bool track);
  ~GzipStream() override;
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  Status start(const GzipPoint& point);
  Result<size_t> read(char* out, size_t size) override;
  uint64_t text_offset() const override { return text_; }
  uint64_t file_offset() const override { return fetched_ - z_.avail_in; }
  // The last entry point at or before text_offset(); needs `track`.
  const GzipPoint& point() const { return point_; }

 private:
  Status refill();
  Status next_member();
  Status skip_trailer();
  Status inflate_some();
  Status corrupt(std::string_view what) const;

  const ReadFile& file_;
  const bool track_;
  z_stream z_ = {};
  std::vector<unsigned char> input_;
  uint64_t fetched_ = 0;  // bytes of the file that were read into input_
  uint64_t text_ = 0;
  bool raw_ = false;
  bool between_ = false;  // before the head of a member, or at the end of the file
  bool ended_ = false;
  uint32_t trailer_left_ = 0;
  GzipPoint point_;
};

class GzipFile {
 public:
  // `cuts`: text offsets, ascending, where reads begin.
  GzipFile(std::string path, std::vector<uint64_t> cuts);
  // Fills out[0, size) with the text from `begin`; kCorrupt if the text ends before.
  Status read(uint64_t begin, size_t size, char* out) const;

 private:
  std::shared_ptr<const GzipPoint> nearest(uint64_t begin, uint64_t* cut) const;
  void remember(uint64_t cut, const GzipPoint& point) const;

  const std::string path_;
  const std::vector<uint64_t> cuts_;
  mutable std::mutex mutex_;
  mutable std::map<uint64_t, std::shared_ptr<const GzipPoint>> points_;  // by cut; under mutex_
};

}  // namespace flux
