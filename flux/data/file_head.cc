#include "flux/data/file_head.h"

#include <algorithm>

#include "flux/data/sources/text_stream.h"
#include "flux/storage/read_file.h"

namespace flux {
namespace {

constexpr size_t kPieceBytes = 64 << 10;  // read at once

}  // namespace

Result<std::string> read_file_head(const std::string& path, size_t bytes_max,
                                   const PipeOptions& pipe) {
  FLUX_ASSIGN_OR_RETURN(const ReadFile file, ReadFile::open(path));
  Packing packing = Packing::kPipe;
  if (pipe.command.empty()) {
    FLUX_ASSIGN_OR_RETURN(packing, find_packing(file));
  }
  FLUX_ASSIGN_OR_RETURN(const auto stream, open_stream(file, packing, pipe));
  std::string text;
  while (text.size() < bytes_max) {
    const size_t before = text.size();
    text.resize(std::min(before + kPieceBytes, bytes_max));
    const size_t wanted = text.size() - before;
    const Status status = stream->read(text.data() + before, wanted).status();
    text.resize(stream->text_offset());
    if (!status.is_ok()) {
      // What came just before a damage was noticed may be garbage.
      text.resize(std::min(text.size(), kPieceBytes));
      if (text.find('\n') == std::string::npos) return status;
      break;
    }
    if (text.size() - before < wanted) break;
  }
  return text;
}

}  // namespace flux
