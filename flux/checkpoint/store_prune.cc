// What comes and goes in a folder of checkpoints: numbers claimed, old ones removed.
#include <algorithm>

#include "flux/checkpoint/store.h"
#include "flux/checkpoint/store_names.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

bool has_files_of(uint64_t number, const std::set<std::pair<uint64_t, std::string>>& places) {
  const auto first = places.lower_bound({number, ""});
  return first != places.end() && first->first == number;
}

}  // namespace

Status CheckpointStore::remove_leftovers() const {
  Status worst;
  const auto remove = [&](const std::string& path) {
    const Status removed = files_->remove_all(path);
    if (worst.is_ok()) worst = removed;
  };
  FLUX_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_->list(folder_));
  for (const std::string& name : names) {
    const std::string path = join_path(folder_, name);
    if (name.ends_with(kTemporarySuffix)) remove(path);
    if (!is_checkpoint_name(name)) continue;
    if (!files_->exists(join_path(path, kManifestName)) &&
        !files_->exists(join_path(path, kBaseName))) {
      remove(path);
      continue;
    }
    FLUX_ASSIGN_OR_RETURN(const std::vector<std::string> within, files_->list(path));
    for (const std::string& file : within)
      if (file.ends_with(kTemporarySuffix)) remove(join_path(path, file));
  }
  return worst;
}

Result<uint64_t> CheckpointStore::begin(uint64_t last) const {
  const std::string claims = join_path(folder_, kClaimsFolder);
  FLUX_RETURN_IF_ERROR(files_->make_folders(claims));
  uint64_t number = last;
  for (const std::string& folder : {folder_, claims}) {
    FLUX_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_->list(folder));
    for (const std::string& name : names)
      if (is_checkpoint_name(name)) number = std::max<uint64_t>(number, std::stoull(name));
  }
  constexpr int kTries = 1000;
  for (int i = 0; i < kTries; ++i) {
    const std::string name = fmt::format("{:06}", ++number);
    const Status created = files_->create_exclusive(join_path(claims, name), "");
    if (created.code() == Code::kStale) continue;  // another coordinator's
    FLUX_RETURN_IF_ERROR(created);
    FLUX_RETURN_IF_ERROR(files_->make_folders(path_of(number)));
    // Claims before this one are of no use: the highest is looked at.
    FLUX_ASSIGN_OR_RETURN(const std::vector<std::string> claimed, files_->list(claims));
    for (const std::string& older : claimed)
      if (is_checkpoint_name(older) && std::stoull(older) < number)
        FLUX_RETURN_IF_ERROR(files_->remove_all(join_path(claims, older)));
    return number;
  }
  return error(Code::kUnavailable, "{}: other coordinators keep claiming numbers", folder_);
}

// Files outside their own folders that these checkpoints build on, and all of their own.
Result<std::set<CheckpointStore::Place>> CheckpointStore::needed_by(
    const std::vector<uint64_t>& numbers) const {
  std::set<Place> needed;
  for (const uint64_t number : numbers) {
    const std::string path = path_in(number, kManifestName);
    FLUX_ASSIGN_OR_RETURN(const std::string text, files_->read(path, kManifestMax));
    FLUX_ASSIGN_OR_RETURN(const Manifest manifest, decode_manifest(path, text));
    for (const FileInfo& file : manifest.files) needed.emplace(number, file.name);
    for (const ShardEntry& shard : manifest.shards) {
      needed.emplace(number, shard.file.name);
      for (const ChainLink& link : shard.chain) needed.emplace(link.number, link.file.name);
    }
  }
  return needed;
}

// From a checkpoint to a base, or to a leftover. All its files are still there.
Status CheckpointStore::retire(uint64_t number, bool is_base) const {
  const std::string base = path_in(number, kBaseName);
  if (is_base && !files_->exists(base))
    FLUX_RETURN_IF_ERROR(files_->write_atomic(
        base, fmt::format("{{\"format\": \"flux checkpoint base\", \"number\": {}}}\n", number)));
  FLUX_RETURN_IF_ERROR(files_->remove_all(path_in(number, kManifestName)));
  // Else a power cut could bring the manifest back after the files that it names are gone.
  return files_->sync_folder(path_of(number));
}

// Removes from a folder without a manifest what is not needed, and the folder if nothing is.
Status CheckpointStore::sweep(uint64_t number, const std::set<Place>& needed) const {
  if (!has_files_of(number, needed)) return files_->remove_all(path_of(number));
  FLUX_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_->list(path_of(number)));
  for (const std::string& name : names)
    if (name != kBaseName && !needed.contains({number, name}))
      FLUX_RETURN_IF_ERROR(files_->remove_all(path_in(number, name)));
  return Status::ok();
}

Status CheckpointStore::prune(uint32_t keep, uint64_t also) const {
  FLUX_ASSIGN_OR_RETURN(std::vector<uint64_t> numbers, committed());
  const auto best = std::find(numbers.begin(), numbers.end(), also);
  const bool held = best != numbers.end() && numbers.end() - best > keep;
  if (held) numbers.erase(best);
  const size_t gone = numbers.size() > keep ? numbers.size() - keep : 0;
  std::vector<uint64_t> kept(numbers.begin() + static_cast<ptrdiff_t>(gone), numbers.end());
  if (held) kept.insert(kept.begin(), also);
  const auto needed = needed_by(kept);
  if (!needed.is_ok()) return needed.status().with_context("no old checkpoint is removed");
  for (const Place& place : needed.value())
    if (!files_->exists(path_in(place.first, place.second)))
      return error(Code::kCorrupt,
                   "no old checkpoint is removed: {} is not there, a newer needs it",
                   path_in(place.first, place.second));
  // First every manifest, while all files are there: what has a manifest is always whole, because
  // the files that it needs are bases as long as it stands.
  std::set<Place> still_needed = needed.value();
  for (size_t i = 0; i < gone; ++i)
    if (const auto more = needed_by({numbers[i]}); more.is_ok())
      for (const Place& place : more.value())
        if (place.first != numbers[i]) still_needed.insert(place);
  for (size_t i = 0; i < gone; ++i)
    FLUX_RETURN_IF_ERROR(retire(numbers[i], has_files_of(numbers[i], still_needed)));
  for (size_t i = 0; i < gone; ++i) FLUX_RETURN_IF_ERROR(sweep(numbers[i], needed.value()));
  FLUX_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_->list(folder_));
  for (const std::string& name : names) {
    if (!is_checkpoint_name(name)) continue;
    const uint64_t number = std::stoull(name);
    if (!is_committed(number) && files_->exists(path_in(number, kBaseName)))
      FLUX_RETURN_IF_ERROR(sweep(number, needed.value()));
  }
  return Status::ok();
}

}  // namespace flux
