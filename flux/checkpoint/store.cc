#include "flux/checkpoint/store.h"

#include <algorithm>

#include "flux/base/hash.h"
#include "flux/base/text.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {
constexpr const char* kManifestName = "manifest.json";
constexpr uint64_t kManifestMax = 256ULL << 20;

bool is_number(const std::string& name) {
  return name.size() >= 6 && name.size() <= 12 &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}
}  // namespace

// A whole file of the size that the manifest says, and no other.
Result<std::string> CheckpointStore::read_sized(const std::string& path, uint64_t bytes) const {
  constexpr uint64_t kSlack = 4096;  // so that a file a little too long is told as such
  FLUX_ASSIGN_OR_RETURN(std::string content, files_->read(path, bytes + kSlack));
  if (content.size() != bytes)
    return error(Code::kCorrupt, "{}: {} bytes, the manifest says {}", path, content.size(), bytes);
  return content;
}

std::string CheckpointStore::path_of(uint64_t number) const {
  return join_path(folder_, fmt::format("{:06}", number));
}

std::vector<uint64_t> CheckpointStore::committed() const {
  std::vector<uint64_t> numbers;
  for (const std::string& name : files_->list(folder_))
    if (is_number(name) && files_->exists(join_path(join_path(folder_, name), kManifestName)))
      numbers.push_back(std::stoull(name));
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

bool CheckpointStore::is_committed(uint64_t number) const {
  return files_->exists(join_path(path_of(number), kManifestName));
}

Status CheckpointStore::remove_leftovers() const {
  for (const std::string& name : files_->list(folder_)) {
    const std::string path = join_path(folder_, name);
    if (name.ends_with(kTemporarySuffix)) FLUX_RETURN_IF_ERROR(files_->remove_all(path));
    if (!is_number(name)) continue;
    if (!files_->exists(join_path(path, kManifestName))) {
      FLUX_RETURN_IF_ERROR(files_->remove_all(path));
      continue;
    }
    for (const std::string& file : files_->list(path))
      if (file.ends_with(kTemporarySuffix))
        FLUX_RETURN_IF_ERROR(files_->remove_all(join_path(path, file)));
  }
  return Status::ok();
}

Status CheckpointStore::add_advice(const Status& status, uint64_t bad) const {
  if (status.code() == Code::kIo) return status;  // the disk failed, not the file
  std::vector<std::string> others;
  for (const uint64_t number : committed())
    if (number != bad) others.push_back(path_of(number));
  const std::string advice = others.empty()
                                 ? "there is no other checkpoint; --fresh starts over"
                                 : fmt::format("move {} away to go on from {}; --fresh starts over",
                                               path_of(bad), join(others, " or "));
  return Status(Code::kCorrupt, status.message() + "\n" + advice);
}

Result<Manifest> CheckpointStore::load_newest() const {
  const std::vector<uint64_t> numbers = committed();
  if (numbers.empty()) return error(Code::kNotFound, "no checkpoint in {}", folder_);
  return load(numbers.back());
}

Result<Manifest> CheckpointStore::load(uint64_t number) const {
  const std::string path = join_path(path_of(number), kManifestName);
  auto text = files_->read(path, kManifestMax);
  if (!text.is_ok()) return add_advice(text.status(), number);
  auto manifest = decode_manifest(path, text.value());
  if (!manifest.is_ok()) return add_advice(manifest.status(), number);
  if (manifest.value().number != number)
    return add_advice(
        error(Code::kCorrupt, "{}: says it is number {}", path, manifest.value().number), number);
  return manifest;
}

Result<std::string> CheckpointStore::read(const Manifest& manifest, const FileInfo& file) const {
  const std::string path = join_path(path_of(manifest.number), file.name);
  auto content = read_sized(path, file.bytes);
  if (!content.is_ok()) return add_advice(content.status(), manifest.number);
  if (hash_bytes(content.value()) != file.hash)
    return add_advice(error(Code::kCorrupt, "{}: checksum does not match the manifest", path),
                      manifest.number);
  return content;
}

Result<ShardImage> CheckpointStore::read_shard(const Manifest& manifest, size_t shard) const {
  const ShardEntry& entry = manifest.shards[shard];
  FLUX_ASSIGN_OR_RETURN(ShardImage image, read_shard(manifest.number, entry.file));
  if (image.replica.op() != entry.op || image.replica.stream_hash() != entry.stream_hash)
    return add_advice(error(Code::kCorrupt, "{}: not the file that the manifest names",
                            join_path(path_of(manifest.number), entry.file.name)),
                      manifest.number);
  return image;
}

Result<ShardImage> CheckpointStore::read_shard(uint64_t number, const FileInfo& file) const {
  if (file.name.empty() || file.name.find('/') != std::string::npos || file.name == "..")
    return invalid("'{}' is not the name of a shard file", file.name);
  const std::string path = join_path(path_of(number), file.name);
  auto content = read_sized(path, file.bytes);
  if (!content.is_ok()) return add_advice(content.status(), number);
  auto image = decode_shard(path, content.value());  // first: it finds the offset of a bad byte
  if (!image.is_ok()) return add_advice(image.status(), number);
  if (hash_bytes(content.value()) != file.hash)
    return add_advice(error(Code::kCorrupt, "{}: not the file that the manifest names", path),
                      number);
  return image;
}

Result<uint64_t> CheckpointStore::begin(uint64_t last) const {
  const std::vector<uint64_t> numbers = committed();
  const uint64_t number = std::max(last, numbers.empty() ? 0 : numbers.back()) + 1;
  FLUX_RETURN_IF_ERROR(files_->remove_all(path_of(number)));
  FLUX_RETURN_IF_ERROR(files_->make_folders(path_of(number)));
  return number;
}

Result<FileInfo> CheckpointStore::add(uint64_t number, const std::string& name,
                                      std::string_view content) const {
  FLUX_RETURN_IF_ERROR(files_->write_synced(join_path(path_of(number), name), content));
  return FileInfo{name, content.size(), hash_bytes(content)};
}

Status CheckpointStore::commit(const Manifest& manifest) const {
  const std::string path = path_of(manifest.number);
  FLUX_RETURN_IF_ERROR(files_->sync_folder(path));
  FLUX_RETURN_IF_ERROR(
      files_->write_atomic(join_path(path, kManifestName), encode_manifest(manifest)));
  return files_->sync_folder(folder_);
}

Status CheckpointStore::abandon(uint64_t number) const {
  return files_->remove_all(path_of(number));
}

Status CheckpointStore::prune(uint32_t keep) const {
  const std::vector<uint64_t> numbers = committed();
  for (size_t i = 0; i + keep < numbers.size(); ++i) {
    // The manifest goes first: what remains of a half-removed checkpoint is a leftover.
    FLUX_RETURN_IF_ERROR(files_->remove_all(join_path(path_of(numbers[i]), kManifestName)));
    FLUX_RETURN_IF_ERROR(files_->remove_all(path_of(numbers[i])));
  }
  return Status::ok();
}

}  // namespace flux
