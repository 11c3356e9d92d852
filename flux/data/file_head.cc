#include "flux/data/file_head.h"

#include "flux/data/sources/text_stream.h"
#include "flux/storage/read_file.h"

namespace flux {

Result<std::string> read_file_head(const std::string& path, size_t bytes_max,
                                   const PipeOptions& pipe) {
  FLUX_ASSIGN_OR_RETURN(const ReadFile file, ReadFile::open(path));
  Packing packing = Packing::kPipe;
  if (pipe.command.empty()) {
    FLUX_ASSIGN_OR_RETURN(packing, find_packing(file));
  }
  FLUX_ASSIGN_OR_RETURN(const auto stream, open_stream(file, packing, pipe));
  std::string text(bytes_max, '\0');
  FLUX_ASSIGN_OR_RETURN(const size_t n, stream->read(text.data(), text.size()));
  text.resize(n);
  return text;
}

}  // namespace flux
