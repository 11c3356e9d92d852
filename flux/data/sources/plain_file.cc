#include "flux/data/sources/plain_file.h"

#include <algorithm>

#include "flux/base/buffer.h"
#include "flux/base/hash.h"
#include "flux/base/text.h"

namespace flux {
namespace {

constexpr const char* kAdvice =
    "data has to stay as it is until its pass is closed: put it back, or start over with --fresh";

Result<uint64_t> hash_text(const ReadFile& file) {
  Buffer<char> text(kHashedBytes);
  uint64_t content = 0;
  for (uint64_t at = 0; at < file.size(); at += kHashedBytes) {
    const auto size = static_cast<size_t>(std::min(kHashedBytes, file.size() - at));
    FLUX_RETURN_IF_ERROR(file.read_at(at, text.data(), size));
    content = add_chunk_hash(content, hash_bytes(text.data(), size));
  }
  return content;
}

}  // namespace

uint64_t add_chunk_hash(uint64_t before, uint64_t chunk) {
  return hash_pair(before, chunk);
}

PlainFile::PlainFile(const DataFile& file)
    : path_(file.path),
      bytes_(file.bytes),
      content_(file.content),
      modified_ns_(file.modified_ns) {}

Status PlainFile::check(const ReadFile& file) {
  if (file.size() != bytes_)
    return invalid("{}: is {} bytes, but was {} when the pass was cut; {}", path_,
                   with_commas(file.size()), with_commas(bytes_), kAdvice);
  const auto modified_ns = static_cast<uint64_t>(file.modified_ns());
  const std::lock_guard lock(mutex_);
  if (modified_ns == modified_ns_) return Status::ok();
  FLUX_ASSIGN_OR_RETURN(const uint64_t content, hash_text(file));
  if (content != content_)
    return invalid("{}: has other content than when the pass was cut; {}", path_, kAdvice);
  modified_ns_ = modified_ns;
  return Status::ok();
}

Status PlainFile::read(uint64_t begin, size_t size, char* out) {
  FLUX_ASSIGN_OR_RETURN(const ReadFile file, ReadFile::open(path_));
  FLUX_RETURN_IF_ERROR(check(file));
  const Status status = file.read_at(begin, out, size);
  FLUX_ASSIGN_OR_RETURN(const bool same, file.is_as_opened());
  if (!same) return invalid("{}: was written to while it was read; {}", path_, kAdvice);
  return status;
}

}  // namespace flux
