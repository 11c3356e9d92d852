#include "flux/data/frozen_vocabulary.h"

#include "flux/base/hash.h"
#include "flux/data/vocabulary.h"
#include "flux/storage/atomic_file.h"
#include "flux/storage/read_file.h"

namespace flux {
namespace {

Result<DataFile> look_at(const std::string& path) {
  FLUX_ASSIGN_OR_RETURN(const ReadFile file, ReadFile::open(path));
  FLUX_ASSIGN_OR_RETURN(const std::string text, read_whole_file(path, kVocabularyBytesMax));
  DataFile out;
  out.path = path;
  out.bytes = text.size();
  out.modified_ns = static_cast<uint64_t>(file.modified_ns());
  out.content = hash_bytes(text);
  return out;
}

}  // namespace

Status freeze_vocabulary(const DataOptions& options, Geometry* geometry) {
  if (options.vocabulary.empty()) return Status::ok();
  FLUX_ASSIGN_OR_RETURN(DataFile file, look_at(options.vocabulary));
  geometry->files.push_back(std::move(file));
  return Status::ok();
}

bool is_frozen_vocabulary(const DataOptions& options, const DataFile& file) {
  return !options.vocabulary.empty() && file.records == 0;
}

Result<DataFile> vocabulary_now(const DataOptions& options, const DataFile& frozen) {
  FLUX_ASSIGN_OR_RETURN(DataFile now, look_at(options.vocabulary));
  if (now.bytes == frozen.bytes && now.content == frozen.content) return frozen;
  return now;
}

}  // namespace flux
