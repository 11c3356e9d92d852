#include "flux/testing/mem_files.h"

#include "flux/storage/atomic_file.h"

namespace flux {

void MemDisk::power_cut() {
  for (auto it = files_.begin(); it != files_.end();)
    it = !it->second.durable && world_->random().chance(0.5) ? files_.erase(it) : std::next(it);
}

MemFiles::Fate MemFiles::fate(const std::string& path, Status* why) {
  if (node_ == nullptr) return Fate::kGood;
  if (!node_->alive()) {
    *why = error(Code::kIo, "{}: the process is dead", path);
    return Fate::kFails;
  }
  SimWorld* world = node_->world();
  if (world->random().chance(faults_.dies)) {
    world->tell(node_->name() + " dies while it writes " + path);
    node_->kill();
    *why = error(Code::kIo, "{}: the process died", path);
    return Fate::kDies;
  }
  if (world->random().chance(faults_.fails)) {
    world->tell(node_->name() + " cannot write " + path);
    *why = world->random().chance(0.5) ? error(Code::kIo, "{}: No space left on device", path)
                                       : error(Code::kIo, "{}: Input/output error", path);
    return Fate::kFails;
  }
  return Fate::kGood;
}

Status MemFiles::check_parent(const std::string& path) const {
  if (is_folder(path)) return error(Code::kInvalid, "{}: Is a directory", path);
  const std::string parent = parent_folder(path);
  if (parent == "." || parent == "/" || is_folder(parent)) return Status::ok();
  return error(Code::kNotFound, "{}: No such file or directory", path);
}

void MemFiles::put(const std::string& path, std::string_view content, bool durable) {
  disk_->files_[path] = {std::string(content), durable};
  ++disk_->writes_;
  // A manifest says when it was made by the machine's clock, which no seed decides.
  const bool dated = path.find("manifest.json") != std::string::npos;
  disk_->world_->trace(dated ? hash_bytes(path, content.size())
                             : hash_bytes(content, hash_bytes(path)));
}

Status MemFiles::write_atomic(const std::string& path, std::string_view content) {
  FLUX_RETURN_IF_ERROR(check_parent(path));
  Status why;
  const Fate fate = this->fate(path, &why);
  if (fate == Fate::kDies) {
    // Before the rename, or after it: whoever comes next finds one or the other.
    Random& random = disk_->world_->random();
    if (random.chance(0.5)) {
      put(path, content, random.chance(0.5));
      if (disk_->on_write) disk_->on_write(path);
    } else {
      put(path + std::string(kTemporarySuffix), content.substr(0, random.below(content.size() + 1)),
          false);
    }
  }
  if (fate != Fate::kGood) return why;
  put(path, content, true);
  if (disk_->on_write) disk_->on_write(path);
  return Status::ok();
}

Status MemFiles::write_synced(const std::string& path, std::string_view content) {
  FLUX_RETURN_IF_ERROR(check_parent(path));
  Status why;
  const Fate fate = this->fate(path, &why);
  if (fate == Fate::kDies)
    put(path, content.substr(0, disk_->world_->random().below(content.size() + 1)), false);
  if (fate != Fate::kGood) return why;
  put(path, content, false);  // its entry is durable after sync_folder()
  if (disk_->on_part) disk_->on_part(path);
  return Status::ok();
}

Status MemFiles::create_exclusive(const std::string& path, std::string_view content) {
  FLUX_RETURN_IF_ERROR(check_parent(path));
  if (disk_->files_.contains(path)) return error(Code::kStale, "{}: File exists", path);
  Status why;
  const Fate fate = this->fate(path, &why);
  if (fate == Fate::kDies && disk_->world_->random().chance(0.5)) put(path, content, true);
  if (fate != Fate::kGood) return why;
  put(path, content, true);
  return Status::ok();
}

Status MemFiles::append_synced(const std::string& path, std::string_view content) {
  FLUX_RETURN_IF_ERROR(check_parent(path));
  Status why;
  const Fate fate = this->fate(path, &why);
  const auto it = disk_->files_.find(path);
  std::string whole = it == disk_->files_.end() ? std::string() : it->second.content;
  if (fate == Fate::kGood)
    whole += content;
  else  // the end may be torn
    whole += content.substr(0, disk_->world_->random().below(content.size() + 1));
  put(path, whole, true);
  return fate == Fate::kGood ? Status::ok() : why;
}

Result<std::string> MemFiles::read(const std::string& path, uint64_t bytes_max) {
  if (is_folder(path)) return error(Code::kInvalid, "{}: Is a directory", path);
  const auto it = disk_->files_.find(path);
  if (it == disk_->files_.end())
    return error(Code::kNotFound, "{}: No such file or directory", path);
  if (it->second.content.size() > bytes_max)
    return error(Code::kCorrupt, "{}: more than {} bytes", path, bytes_max);
  FLUX_RETURN_IF_ERROR(check_readable(path));
  return bend(path, it->second.content);
}

// A disk that reads well draws nothing, so that it moves no other choice of a seed.
Status MemFiles::check_readable(const std::string& path) {
  if (node_ == nullptr || faults_.unread <= 0) return Status::ok();
  SimWorld* world = node_->world();
  if (!world->random().chance(faults_.unread)) return Status::ok();
  ++disk_->unread_;
  world->tell(node_->name() + " cannot read " + path);
  return error(Code::kIo, "{}: Input/output error", path);
}

std::string MemFiles::bend(const std::string& path, std::string content) {
  const bool drawn = node_ != nullptr && faults_.bent > 0 && !content.empty() &&
                     path.find("/checkpoints/") != std::string::npos;
  if (!drawn) return content;
  SimWorld* world = node_->world();
  Random& random = world->random();
  if (!random.chance(faults_.bent)) return content;
  ++disk_->bent_;
  world->tell(node_->name() + " reads something else than was written from " + path);
  const uint64_t at = random.below(content.size());
  if (random.chance(0.5))
    content.resize(at);
  else
    content[at] = static_cast<char>(content[at] ^ (1 << random.below(8)));
  return content;
}

Status MemFiles::make_folders(const std::string& path) {
  if (disk_->files_.contains(path)) return error(Code::kInvalid, "{}: Not a directory", path);
  for (std::string at = path; at != "." && at != "/" && !at.empty(); at = parent_folder(at))
    disk_->folders_.insert(at);
  return Status::ok();
}

Status MemFiles::sync_folder(const std::string& path) {
  if (!is_folder(path)) return error(Code::kNotFound, "{}: No such file or directory", path);
  Status why;
  if (fate(path, &why) != Fate::kGood) return why;
  const std::string prefix = path + "/";
  for (auto it = disk_->files_.lower_bound(prefix);
       it != disk_->files_.end() && it->first.starts_with(prefix); ++it)
    if (it->first.find('/', prefix.size()) == std::string::npos) it->second.durable = true;
  return Status::ok();
}

bool MemFiles::exists(const std::string& path) {
  return disk_->files_.contains(path) || is_folder(path);
}

Result<std::vector<std::string>> MemFiles::list(const std::string& folder) {
  FLUX_RETURN_IF_ERROR(check_readable(folder));
  std::set<std::string> names;
  const std::string prefix = folder + "/";
  const auto add = [&](const std::string& path) {
    names.insert(path.substr(prefix.size(), path.find('/', prefix.size()) - prefix.size()));
  };
  for (auto it = disk_->files_.lower_bound(prefix);
       it != disk_->files_.end() && it->first.starts_with(prefix); ++it)
    add(it->first);
  for (auto it = disk_->folders_.lower_bound(prefix);
       it != disk_->folders_.end() && it->starts_with(prefix); ++it)
    add(*it);
  return std::vector<std::string>(names.begin(), names.end());
}

Status MemFiles::remove_all(const std::string& path) {
  if (node_ != nullptr && !node_->alive()) return error(Code::kIo, "{}: the process is dead", path);
  disk_->files_.erase(path);
  disk_->folders_.erase(path);
  const std::string prefix = path + "/";
  for (auto it = disk_->files_.lower_bound(prefix);
       it != disk_->files_.end() && it->first.starts_with(prefix);)
    it = disk_->files_.erase(it);
  for (auto it = disk_->folders_.lower_bound(prefix);
       it != disk_->folders_.end() && it->starts_with(prefix);)
    it = disk_->folders_.erase(it);
  disk_->world_->trace(hash_bytes(path, 7));
  return Status::ok();
}

}  // namespace flux
