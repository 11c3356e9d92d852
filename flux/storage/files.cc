#include "flux/storage/files.h"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

Status write_all(int fd, const std::string& path, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return errno_status("cannot write " + path, errno);
    content.remove_prefix(static_cast<size_t>(n));
  }
  return Status::ok();
}

// Writes and flushes what is open as `fd`, closes it.
Status finish_file(int fd, const std::string& path, std::string_view content) {
  Status status = write_all(fd, path, content);
  if (status.is_ok() && ::fsync(fd) != 0) status = errno_status("cannot flush " + path, errno);
  if (::close(fd) != 0 && status.is_ok()) status = errno_status("cannot close " + path, errno);
  return status;
}

class RealFiles final : public Files {
 public:
  Status write_atomic(const std::string& path, std::string_view content) override {
    return write_file_atomic(path, content);
  }
  Status write_synced(const std::string& path, std::string_view content) override {
    return write_file_synced(path, content);
  }
  Status create_exclusive(const std::string& path, std::string_view content) override {
    const int fd = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
    if (fd < 0 && errno == EEXIST) return error(Code::kStale, "{} exists already", path);
    if (fd < 0) return errno_status("cannot create " + path, errno);
    const Status status = finish_file(fd, path, content);
    if (!status.is_ok()) {
      ::unlink(path.c_str());  // nobody may take a part of it for the whole
      return status;
    }
    return flux::sync_folder(parent_folder(path));
  }
  Status append_synced(const std::string& path, std::string_view content) override {
    const bool fresh = !path_exists(path);
    const int fd = ::open(path.c_str(), O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0644);
    if (fd < 0) return errno_status("cannot open " + path, errno);
    FLUX_RETURN_IF_ERROR(finish_file(fd, path, content));
    return fresh ? flux::sync_folder(parent_folder(path)) : Status::ok();
  }
  Result<std::string> read(const std::string& path, uint64_t bytes_max) override {
    return read_whole_file(path, bytes_max);
  }
  Status make_folders(const std::string& path) override { return flux::make_folders(path); }
  Status sync_folder(const std::string& path) override { return flux::sync_folder(path); }
  bool exists(const std::string& path) override { return path_exists(path); }
  Result<std::vector<std::string>> list(const std::string& folder) override {
    return read_folder(folder);
  }
  Status remove_all(const std::string& path) override { return flux::remove_all(path); }
};

}  // namespace

Files& real_files() {
  static RealFiles files;  // has no state
  return files;
}

}  // namespace flux
