#include "flux/data/sources/text_stream.h"

#include <algorithm>

#include "flux/data/gzip.h"
#include "flux/data/sources/pipe_stream.h"
#include "flux/data/sources/zstd_stream.h"

namespace flux {
namespace {

class PlainStream final : public TextStream {
 public:
  explicit PlainStream(const ReadFile& file) : file_(file) {}
  Result<size_t> read(char* out, size_t size) override {
    const size_t n = std::min<uint64_t>(size, file_.size() - at_);
    FLUX_RETURN_IF_ERROR(file_.read_at(at_, out, n));
    at_ += n;
    return n;
  }
  uint64_t text_offset() const override { return at_; }
  uint64_t file_offset() const override { return at_; }

 private:
  const ReadFile& file_;
  uint64_t at_ = 0;
};

}  // namespace

Result<std::unique_ptr<TextStream>> open_stream(const ReadFile& file, Packing packing,
                                                const PipeOptions& pipe) {
  switch (packing) {
    case Packing::kGzip: {
      auto stream = std::make_unique<GzipStream>(file, false);
      FLUX_RETURN_IF_ERROR(stream->start(GzipPoint{}));
      return std::unique_ptr<TextStream>(std::move(stream));
    }
    case Packing::kZstd:
      return std::unique_ptr<TextStream>(std::make_unique<ZstdStream>(file));
    case Packing::kPipe: {
      FLUX_ASSIGN_OR_RETURN(auto stream, PipeStream::start(file.path(), pipe));
      return std::unique_ptr<TextStream>(std::move(stream));
    }
    default:
      return std::unique_ptr<TextStream>(std::make_unique<PlainStream>(file));
  }
}

}  // namespace flux
