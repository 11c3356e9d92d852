// The machine's files with one fault: for tests of what a coordinator does when a folder cannot be
// removed, as when a server is still writing into it, or when a disk is full for a while.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flux/storage/files.h"

namespace flux {

class PlainFiles : public Files {
 public:
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
  Status remove_all(const std::string& path) override { return real_files().remove_all(path); }
};

// This folder is never empty: somebody writes into it all the time.
class BusyFolder final : public PlainFiles {
 public:
  explicit BusyFolder(std::string path) : path_(std::move(path)) {}
  Status remove_all(const std::string& path) override {
    if (path == path_) return error(Code::kUnavailable, "cannot remove {}: not empty", path);
    return PlainFiles::remove_all(path);
  }

 private:
  std::string path_;
};

// No manifest fits on it while `full`.
class FullDisk final : public PlainFiles {
 public:
  Status write_atomic(const std::string& path, std::string_view content) override {
    if (!full || !path.ends_with("manifest.json")) return PlainFiles::write_atomic(path, content);
    ++refused;
    return error(Code::kIo, "{}: No space left on device", path);
  }
  bool full = true;
  int refused = 0;
};

}  // namespace flux
