// MemDisk and MemFiles: a shared file system in memory, which fails and forgets as disks do.
//
// MemDisk is the file server of a simulated cluster; each node sees it through its own MemFiles,
// with the contracts of storage/files.h. A seed decides which operations fail (no space, an I/O
// error) and in which one its node dies: then the operation is left half done, as far as its
// contract allows, and the node is dead before it returns. Reading fails too, or gives a file of a
// checkpoint with a bit turned over or without its end; the next reading may be good again.
// power_cut() loses what no call had made durable: entries of folders that were not synced.
// Not thread-safe: one world is one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "flux/storage/files.h"
#include "flux/testing/sim_node.h"

namespace flux {

class MemDisk {
 public:
  explicit MemDisk(SimWorld* world) : world_(world) {}

  // Files whose entry is not durable may be lost, each by its own draw.
  void power_cut();
  // Called after each file that appeared or changed as a whole; the audit looks at manifests so.
  std::function<void(const std::string& path)> on_write;

  // Called after each file of a checkpoint that was written but is not committed yet.
  std::function<void(const std::string& path)> on_part;

  uint64_t writes() const { return writes_; }
  uint64_t unread() const { return unread_; }  // readings that failed
  uint64_t bent() const { return bent_; }      // ... that gave something else than was written

 private:
  friend class MemFiles;
  struct File {
    std::string content;
    bool durable = false;  // survives a power cut
  };
  SimWorld* world_;
  std::map<std::string, File> files_;
  std::set<std::string> folders_;
  uint64_t writes_ = 0;
  uint64_t unread_ = 0;
  uint64_t bent_ = 0;
};

struct DiskFaults {
  double fails = 0;   // chance that a writing call fails
  double dies = 0;    // chance that the node dies inside one
  double unread = 0;  // chance that a file or folder cannot be read
  double bent = 0;    // chance that a file of a checkpoint is not read as it was written
};

class MemFiles final : public Files {
 public:
  // `node` may be null: then nothing fails (the eye of the audit).
  MemFiles(MemDisk* disk, SimNode* node, DiskFaults faults)
      : disk_(disk), node_(node), faults_(faults) {}

  Status write_atomic(const std::string& path, std::string_view content) override;
  Status write_synced(const std::string& path, std::string_view content) override;
  Status create_exclusive(const std::string& path, std::string_view content) override;
  Status append_synced(const std::string& path, std::string_view content) override;
  Result<std::string> read(const std::string& path, uint64_t bytes_max) override;
  Status make_folders(const std::string& path) override;
  Status sync_folder(const std::string& path) override;
  bool exists(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& folder) override;
  Status remove_all(const std::string& path) override;

  // From now on the disk is perfect.
  void heal() { faults_ = {}; }

 private:
  enum class Fate : uint8_t { kGood, kFails, kDies };
  // What happens to a writing call; `*why` is its failure if it fails.
  Fate fate(const std::string& path, Status* why);
  Status check_readable(const std::string& path);
  std::string bend(const std::string& path, std::string content);
  Status check_parent(const std::string& path) const;
  void put(const std::string& path, std::string_view content, bool durable);
  bool is_folder(const std::string& path) const { return disk_->folders_.contains(path); }

  MemDisk* disk_;
  SimNode* node_;
  DiskFaults faults_;
};

}  // namespace flux
