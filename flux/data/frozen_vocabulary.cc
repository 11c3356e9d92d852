#include "flux/data/frozen_vocabulary.h"

#include <algorithm>

#include "flux/base/buffer.h"
#include "flux/base/hash.h"
#include "flux/data/vocabulary.h"
#include "flux/storage/read_file.h"

namespace flux {
namespace {

constexpr uint64_t kPieceBytes = 1 << 20;

Result<DataFile> look_at(const std::string& path) {
  FLUX_ASSIGN_OR_RETURN(const ReadFile file, ReadFile::open(path));
  StreamHasher hasher;
  Buffer<char> piece(kPieceBytes);
  for (uint64_t at = 0; at < file.size(); at += kPieceBytes) {
    const size_t size = std::min<uint64_t>(kPieceBytes, file.size() - at);
    FLUX_RETURN_IF_ERROR(file.read_at(at, piece.data(), size));
    hasher.update(piece.data(), size);
  }
  DataFile out;
  out.path = path;
  out.bytes = file.size();
  out.modified_ns = static_cast<uint64_t>(file.modified_ns());
  out.content = hasher.digest();
  return out;
}

}  // namespace

Status check_vocabulary(const DataOptions& options) {
  if (options.vocabulary.empty()) return Status::ok();
  return Vocabulary::load(options.vocabulary).status();
}

Status freeze_vocabulary(const DataOptions& options, Geometry* geometry) {
  if (options.vocabulary.empty()) return Status::ok();
  FLUX_ASSIGN_OR_RETURN(DataFile file, look_at(options.vocabulary));
  geometry->files.push_back(std::move(file));
  return Status::ok();
}

bool is_frozen_vocabulary(const DataOptions& options, const Geometry& geometry, size_t file) {
  return !options.vocabulary.empty() && file + 1 == geometry.files.size() &&
         geometry.files[file].records == 0;
}

Result<DataFile> vocabulary_now(const DataOptions& options, const DataFile& frozen) {
  FLUX_ASSIGN_OR_RETURN(DataFile now, look_at(options.vocabulary));
  if (now.bytes == frozen.bytes && now.content == frozen.content) return frozen;
  return now;
}

}  // namespace flux
