// Gzip files as text that can be entered in the middle.
//
// GzipIndex remembers, every few megabytes, where inflating can start again: position in both
// streams and the 32 KiB of text before it. Building one inflates the file once; reading a range
// then starts at the nearest point. Files of several members are one text.
// Threads: an index is immutable; read_gzip_range() is safe from any thread.
// Failure: kCorrupt with path and compressed offset for damaged or cut files.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "flux/base/status.h"
#include "flux/storage/read_file.h"

namespace flux {

class GzipIndex {
 public:
  struct Point {
    uint64_t text = 0;        // offset in the uncompressed text
    uint64_t compressed = 0;  // offset of the first whole byte to read
    int bits = 0;             // bits of the byte before it that belong to the next block
    bool member_start = false;  // a gzip header comes next; no window
    std::vector<char> window;
  };
  std::vector<Point> points;
  uint64_t text_bytes = 0;
};

// Inflates everything, handing the text piece by piece to `take`, and notes the points.
Result<std::shared_ptr<const GzipIndex>> inflate_gzip(
    const ReadFile& file, const std::function<Status(std::string_view)>& take);
// Text [begin, begin + bytes) of the file.
Status read_gzip_range(const ReadFile& file, const GzipIndex& index, uint64_t begin, char* out,
                       size_t bytes);

}  // namespace flux
