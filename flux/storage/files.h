// Files: the few things the roles ask of a disk, behind an interface that a simulator can replace.
//
// real_files() is the machine's file system through storage/atomic_file.h; same contracts.
// Threads: any. Failure: Status that names the path.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "flux/base/status.h"

namespace flux {

class Files {
 public:
  virtual ~Files() = default;
  virtual Status write_atomic(const std::string& path, std::string_view content) = 0;
  virtual Status write_synced(const std::string& path, std::string_view content) = 0;
  // Creates a file that must not exist yet; kStale if it does. Durable when it returns.
  virtual Status create_exclusive(const std::string& path, std::string_view content) = 0;
  // Adds to the end of a file (created if absent); durable when it returns.
  virtual Status append_synced(const std::string& path, std::string_view content) = 0;
  virtual Result<std::string> read(const std::string& path, uint64_t bytes_max) = 0;
  virtual Status make_folders(const std::string& path) = 0;
  virtual Status sync_folder(const std::string& path) = 0;
  // False only if it is certainly not there: where the disk does not say, whoever reads it learns.
  virtual bool exists(const std::string& path) = 0;
  // Names (not paths) in a folder, sorted; none if it is not there.
  virtual Result<std::vector<std::string>> list(const std::string& folder) = 0;
  virtual Status remove_all(const std::string& path) = 0;
};

Files& real_files();

}  // namespace flux
