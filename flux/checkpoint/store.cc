#include "flux/checkpoint/store.h"

#include <algorithm>

#include "flux/base/hash.h"
#include "flux/base/text.h"
#include "flux/checkpoint/shard_chain.h"
#include "flux/checkpoint/store_names.h"
#include "flux/storage/atomic_file.h"

namespace flux {
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

std::string CheckpointStore::path_in(uint64_t number, std::string_view name) const {
  return join_path(path_of(number), name);
}

Result<std::vector<uint64_t>> CheckpointStore::committed() const {
  FLUX_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_->list(folder_));
  std::vector<uint64_t> numbers;
  for (const std::string& name : names)
    if (is_checkpoint_name(name) &&
        files_->exists(join_path(join_path(folder_, name), kManifestName)))
      numbers.push_back(std::stoull(name));
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

bool CheckpointStore::is_committed(uint64_t number) const {
  return files_->exists(path_in(number, kManifestName));
}

// Whatever uses the bad file cannot be used; the rest can.
Status CheckpointStore::add_advice(const Status& status, uint64_t bad, const Place& file) const {
  if (status.code() == Code::kIo) return status;  // the disk failed, not the file
  const auto numbers = committed();
  if (!numbers.is_ok()) return status;
  std::vector<std::string> moved, others;
  for (const uint64_t number : numbers.value()) {
    bool uses = number == bad;
    if (!uses && !file.second.empty()) {
      const auto needed = needed_by({number});
      uses = !needed.is_ok() || needed.value().contains(file);
    }
    (uses ? moved : others).push_back(path_of(number));
  }
  if (moved.empty()) moved.push_back(path_of(bad));
  const std::string advice = others.empty()
                                 ? "there is no other checkpoint; --fresh starts over"
                                 : fmt::format("move {} away to go on from {}; --fresh starts over",
                                               join(moved, " and "), join(others, " or "));
  return Status(Code::kCorrupt, status.message() + "\n" + advice);
}

Result<Manifest> CheckpointStore::load_newest() const {
  FLUX_ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, committed());
  if (numbers.empty()) return error(Code::kNotFound, "no checkpoint in {}", folder_);
  return load(numbers.back());
}

Result<Manifest> CheckpointStore::load(uint64_t number) const {
  const std::string path = path_in(number, kManifestName);
  auto text = files_->read(path, kManifestMax);
  if (!text.is_ok()) return add_advice(text.status(), number, {});
  auto manifest = decode_manifest(path, text.value());
  if (!manifest.is_ok()) return add_advice(manifest.status(), number, {});
  if (manifest.value().number != number)
    return add_advice(
        error(Code::kCorrupt, "{}: says it is number {}", path, manifest.value().number), number,
        {});
  return manifest;
}

Result<std::string> CheckpointStore::read(const Manifest& manifest, const FileInfo& file) const {
  const std::string path = path_in(manifest.number, file.name);
  const Place place(manifest.number, file.name);
  auto content = read_sized(path, file.bytes);
  if (!content.is_ok()) return add_advice(content.status(), manifest.number, place);
  if (hash_bytes(content.value()) != file.hash)
    return add_advice(error(Code::kCorrupt, "{}: checksum does not match the manifest", path),
                      manifest.number, place);
  return content;
}

Result<ShardImage> CheckpointStore::read_shard(const Manifest& manifest, size_t shard) const {
  return read_shard(manifest.number, manifest.shards[shard]);
}

Result<ShardImage> CheckpointStore::read_shard(uint64_t number, const ShardEntry& entry) const {
  std::vector<ChainLink> links = entry.chain;
  links.push_back({number, entry.file, entry.op, entry.stream_hash});
  ShardChainReader chain;
  for (const ChainLink& link : links) {
    if (link.file.name.empty() || link.file.name.find('/') != std::string::npos ||
        link.file.name == "..")
      return invalid("'{}' is not the name of a shard file", link.file.name);
    const std::string path = path_in(link.number, link.file.name);
    const auto content = read_sized(path, link.file.bytes);
    const Status added =
        content.is_ok() ? chain.add(path, content.value(), link) : content.status();
    if (!added.is_ok()) return add_advice(added, number, {link.number, link.file.name});
  }
  return chain.finish();
}

Result<ShardReplica> CheckpointStore::read_state(const Manifest& manifest, size_t shard) const {
  const ShardEntry& entry = manifest.shards[shard];
  const std::string path = path_in(manifest.number, entry.file.name);
  const ChainLink link{manifest.number, entry.file, entry.op, entry.stream_hash};
  const auto content = read_sized(path, entry.file.bytes);
  auto state = content.is_ok() ? state_in(path, content.value(), link, !entry.chain.empty())
                               : Result<ShardReplica>(content.status());
  if (!state.is_ok())
    return add_advice(state.status(), manifest.number, {manifest.number, entry.file.name});
  return state;
}

Result<FileInfo> CheckpointStore::add(uint64_t number, const std::string& name,
                                      std::string_view content) const {
  FLUX_RETURN_IF_ERROR(files_->write_synced(path_in(number, name), content));
  return FileInfo{name, content.size(), hash_bytes(content)};
}

Status CheckpointStore::check_named_files(const Manifest& manifest) const {
  const auto check = [&](uint64_t number, const std::string& name) {
    const std::string path = path_in(number, name);
    return files_->exists(path) ? Status::ok()
                                : error(Code::kCorrupt, "{} is not there, checkpoint {} needs it",
                                        path, manifest.number);
  };
  for (const ShardEntry& shard : manifest.shards) {
    FLUX_RETURN_IF_ERROR(check(manifest.number, shard.file.name));
    for (const ChainLink& link : shard.chain)
      FLUX_RETURN_IF_ERROR(check(link.number, link.file.name));
  }
  for (const FileInfo& file : manifest.files)
    FLUX_RETURN_IF_ERROR(check(manifest.number, file.name));
  return Status::ok();
}

Status CheckpointStore::commit(const Manifest& manifest) const {
  const std::string path = path_of(manifest.number);
  FLUX_ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, committed());
  if (!numbers.empty() && numbers.back() >= manifest.number)
    return error(Code::kStale, "{}: checkpoint {} is committed already", path, numbers.back());
  FLUX_RETURN_IF_ERROR(check_named_files(manifest));
  FLUX_RETURN_IF_ERROR(files_->sync_folder(path));
  FLUX_RETURN_IF_ERROR(
      files_->write_atomic(join_path(path, kManifestName), encode_manifest(manifest)));
  FLUX_RETURN_IF_ERROR(files_->sync_folder(folder_));
  // Somebody who took us for dead may have cleared the folder before the manifest appeared.
  return check_named_files(manifest);
}

Status CheckpointStore::abandon(uint64_t number) const {
  // A commit may fail after its manifest appeared: it goes before what it names.
  if (is_committed(number)) FLUX_RETURN_IF_ERROR(retire(number, false));
  return files_->remove_all(path_of(number));
}

}  // namespace flux
