#include "flux/data/file_head.h"

#include <algorithm>

#include "flux/data/gzip.h"
#include "flux/storage/read_file.h"

namespace flux {

Result<std::string> read_file_head(const std::string& path, size_t bytes_max) {
  FLUX_ASSIGN_OR_RETURN(const ReadFile file, ReadFile::open(path));
  std::string text(bytes_max, '\0');
  unsigned char magic[2] = {};
  if (file.size() >= 2) FLUX_RETURN_IF_ERROR(file.read_at(0, magic, 2));
  if (magic[0] == 0x1f && magic[1] == 0x8b) {
    GzipStream stream(file, false);
    FLUX_RETURN_IF_ERROR(stream.start(GzipPoint{}));
    FLUX_ASSIGN_OR_RETURN(const size_t n, stream.read(text.data(), text.size()));
    text.resize(n);
  } else {
    text.resize(std::min<uint64_t>(text.size(), file.size()));
    FLUX_RETURN_IF_ERROR(file.read_at(0, text.data(), text.size()));
  }
  return text;
}

}  // namespace flux
