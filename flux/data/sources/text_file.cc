#include "flux/data/sources/text_file.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "flux/base/text.h"
#include "flux/data/gzip.h"
#include "flux/data/sources/batch_hash.h"
#include "flux/data/sources/kept_text.h"
#include "flux/data/sources/pipe_stream.h"
#include "flux/data/sources/plain_file.h"
#include "flux/data/sources/zstd_stream.h"
#include "flux/storage/read_file.h"

namespace flux {
namespace {

constexpr uint64_t kPointsApart = 256 << 10;

class GzipText final : public TextFile {
 public:
  GzipText(std::string path, std::vector<uint64_t> cuts)
      : file_(std::move(path), std::move(cuts)) {}
  Status read(uint64_t begin, size_t size, char* out) override {
    return file_.read(begin, size, out);
  }

 private:
  const GzipFile file_;
};

// A zstd stream with the file that it reads.
class OwnedZstdStream final : public TextStream {
 public:
  OwnedZstdStream(ReadFile file, const ZstdPoint& point)
      : file_(std::move(file)), stream_(file_, point) {}
  Result<size_t> read(char* out, size_t size) override { return stream_.read(out, size); }
  uint64_t text_offset() const override { return stream_.text_offset(); }
  uint64_t file_offset() const override { return stream_.file_offset(); }

 private:
  const ReadFile file_;
  ZstdStream stream_;
};

class ZstdOpener final : public StreamOpener {
 public:
  explicit ZstdOpener(std::string path) : path_(std::move(path)) {}
  uint64_t nearest(uint64_t begin) const override { return point(begin).text; }
  Result<std::unique_ptr<TextStream>> open(uint64_t nearest) const override {
    FLUX_ASSIGN_OR_RETURN(ReadFile file, ReadFile::open(path_));
    return std::unique_ptr<TextStream>(
        std::make_unique<OwnedZstdStream>(std::move(file), point(nearest)));
  }

 private:
  ZstdPoint point(uint64_t begin) const {
    const std::lock_guard lock(mutex_);
    if (points_.empty()) {
      const auto file = ReadFile::open(path_);
      points_ =
          file.is_ok() ? find_zstd_points(file.value(), kPointsApart) : std::vector<ZstdPoint>(1);
    }
    const auto behind =
        std::upper_bound(points_.begin(), points_.end(), begin,
                         [](uint64_t text, const ZstdPoint& one) { return text < one.text; });
    return *(behind - 1);
  }

  const std::string path_;
  mutable std::mutex mutex_;
  mutable std::vector<ZstdPoint> points_;  // empty: not looked for yet; under mutex_
};

class PipeOpener final : public StreamOpener {
 public:
  PipeOpener(std::string path, PipeOptions options)
      : path_(std::move(path)), options_(std::move(options)) {}
  uint64_t nearest(uint64_t /*begin*/) const override { return 0; }
  Result<std::unique_ptr<TextStream>> open(uint64_t /*nearest*/) const override {
    FLUX_ASSIGN_OR_RETURN(auto stream, PipeStream::start(path_, options_));
    return std::unique_ptr<TextStream>(std::move(stream));
  }

 private:
  const std::string path_;
  const PipeOptions options_;
};

std::unique_ptr<TextFile> make_text_file(const DataFile& file, const PipeOptions& pipe,
                                         std::vector<uint64_t> cuts) {
  std::unique_ptr<const StreamOpener> opener;
  switch (file.packing) {
    case Packing::kGzip:
      return std::make_unique<GzipText>(file.path, std::move(cuts));
    case Packing::kZstd:
      opener = std::make_unique<ZstdOpener>(file.path);
      break;
    case Packing::kPipe:
      opener = std::make_unique<PipeOpener>(file.path, pipe);
      break;
    default:
      return std::make_unique<PlainFile>(file);
  }
  return std::make_unique<KeptText>(file.path, std::move(opener), std::move(cuts));
}

}  // namespace

bool reads_in_order(const ReadFile& file, Packing packing, uint64_t text_bytes) {
  if (packing == Packing::kPipe) return text_bytes > kNearBytes;
  if (packing != Packing::kZstd) return false;
  uint64_t entry = 0;
  for (const ZstdPoint& point : find_zstd_points(file, kPointsApart)) {
    if (point.text - entry > kNearBytes) return true;
    entry = point.text;
  }
  return text_bytes > entry && text_bytes - entry > kNearBytes;
}

TextFiles::TextFiles(const Geometry& geometry, const PipeOptions& pipe)
    : batch_size_(geometry.batch_size) {
  std::vector<std::vector<uint64_t>> cuts(geometry.files.size());
  for (const DataBlock& block : geometry.blocks) cuts[block.file].push_back(block.begin);
  for (size_t i = 0; i < geometry.files.size(); ++i) {
    const DataFile& file = geometry.files[i];
    files_.push_back(make_text_file(file, pipe, std::move(cuts[i])));
    names_.push_back(file.packing == Packing::kPipe
                         ? fmt::format("{}: the output of {}", file.path, join(pipe.command, " "))
                         : file.path);
  }
}

// Makes `file` the last used one; closes the stream of the one that was not used for longest.
void TextFiles::touch(uint32_t file) const {
  std::optional<uint32_t> oldest;
  {
    const std::lock_guard lock(mutex_);
    kept_.remove(file);
    kept_.push_front(file);
    if (kept_.size() > kKeptMax) {
      oldest = kept_.back();
      kept_.pop_back();
    }
  }
  if (oldest) files_[*oldest]->drop();
}

Status TextFiles::read(const DataBlock& block, char* out) const {
  TextFile* file = files_[block.file].get();
  if (file->keeps_stream()) touch(block.file);
  const size_t size = block.end - block.begin;
  FLUX_RETURN_IF_ERROR(file->read(block.begin, size, out));
  if (block.content == 0 || block.content == hash_batches({out, size}, batch_size_))
    return Status::ok();
  return invalid(
      "{}: bytes {} to {} are not those that the scan found; the text must be the same "
      "whenever it is read, until the pass is closed; start afresh to scan it again",
      names_[block.file], block.begin, block.end);
}

}  // namespace flux
