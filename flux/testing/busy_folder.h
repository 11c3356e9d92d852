// BusyFolder: for tests of what a coordinator does when a folder cannot be removed, as when a
// server is still writing into it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flux/storage/files.h"

namespace flux {

// The machine's files, but this folder is never empty: somebody writes into it all the time.
class BusyFolder final : public Files {
 public:
  explicit BusyFolder(std::string path) : path_(std::move(path)) {}
  Status write_atomic(const std::string& path, std::string_view content) override {
    return real_files().write_atomic(path, content);
  }
  Status write_synced(const std::string& path, std::string_view content) override {
    return real_files().write_synced(path, content);
  }
  Status create_exclusive(const std::string& path, std::string_view content) override {
    return real_files().create_exclusive(path, content);
  }
  Status append_synced(const std::string& path, std::string_view content) override {
    return real_files().append_synced(path, content);
  }
  Result<std::string> read(const std::string& path, uint64_t bytes_max) override {
    return real_files().read(path, bytes_max);
  }
  Status make_folders(const std::string& path) override { return real_files().make_folders(path); }
  Status sync_folder(const std::string& path) override { return real_files().sync_folder(path); }
  bool exists(const std::string& path) override { return real_files().exists(path); }
  Result<std::vector<std::string>> list(const std::string& folder) override {
    return real_files().list(folder);
  }
  Status remove_all(const std::string& path) override {
    if (path == path_) return error(Code::kUnavailable, "cannot remove {}: not empty", path);
    return real_files().remove_all(path);
  }

 private:
  std::string path_;
};

}  // namespace flux
