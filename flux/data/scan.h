// Scanning one file: how many lines, and where every batch_size-th of them starts. The raw
// material of a Geometry. Internal to data/. Threads: as many as asked for, joined before return.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/data/gzip_text.h"

namespace flux {

constexpr uint64_t kLineBytesMax = 1U << 20;

struct ScannedFile {
  uint64_t bytes = 0;       // on disk
  uint64_t text_bytes = 0;  // uncompressed
  uint64_t records = 0;     // lines
  std::vector<uint64_t> batch_starts;  // text offset of record 0, batch_size, 2 * batch_size, ...
  std::shared_ptr<const GzipIndex> gzip_index;  // of a .gz file
};

Result<ScannedFile> scan_file(const std::string& path, uint32_t batch_size, unsigned threads);

}  // namespace flux
