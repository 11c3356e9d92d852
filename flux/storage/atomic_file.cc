#include "flux/storage/atomic_file.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace flux {
namespace {

namespace fs = std::filesystem;

Status write_all(int fd, const std::string& path, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return errno_status("cannot write " + path, errno);
    content.remove_prefix(static_cast<size_t>(n));
  }
  return Status::ok();
}

Status write_in_place(const std::string& path, std::string_view content) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno_status("cannot open " + path, errno);
  Status status = write_all(fd, path, content);
  if (::close(fd) != 0 && status.is_ok()) status = errno_status("cannot close " + path, errno);
  return status;
}

}  // namespace

Status write_file_synced(const std::string& path, std::string_view content) {
  const int fd = ::open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return errno_status("cannot create " + path, errno);
  Status status = write_all(fd, path, content);
  // After a failed fsync the pages may be gone: the file is dropped, never flushed again.
  if (status.is_ok() && ::fsync(fd) != 0) status = errno_status("cannot flush " + path, errno);
  if (::close(fd) != 0 && status.is_ok()) status = errno_status("cannot close " + path, errno);
  if (!status.is_ok()) ::unlink(path.c_str());
  return status;
}

std::string resolve_links(const std::string& path) {
  constexpr int kLinksMax = 40;  // as the kernel: more is a loop
  fs::path at = path;
  std::error_code failure;
  for (int i = 0; i < kLinksMax && fs::is_symlink(at, failure); ++i) {
    const fs::path next = fs::read_symlink(at, failure);
    if (failure) return path;
    at = next.is_absolute() ? next : at.parent_path() / next;
  }
  return at.string();
}

bool is_special_file(const std::string& path) {
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure);
  return !failure && fs::exists(status) && !fs::is_regular_file(status) &&
         !fs::is_directory(status);
}

Status write_file_atomic(const std::string& named, std::string_view content) {
  const std::string path = resolve_links(named);
  if (is_special_file(path)) return write_in_place(path, content);
  const std::string aside = path + std::string(kTemporarySuffix);
  FLUX_RETURN_IF_ERROR(write_file_synced(aside, content));
  if (::rename(aside.c_str(), path.c_str()) != 0) {
    Status status = errno_status("cannot rename " + aside, errno);
    ::unlink(aside.c_str());
    return status;
  }
  return sync_folder(parent_folder(path));
}

Result<std::string> read_whole_file(const std::string& path, uint64_t bytes_max) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno_status("cannot open " + path, errno);
  struct stat info {};
  Status status;
  std::string content;
  if (::fstat(fd, &info) != 0) {
    status = errno_status("cannot stat " + path, errno);
  } else if (!S_ISREG(info.st_mode)) {
    status = invalid("{} is not a file", path);
  } else if (static_cast<uint64_t>(info.st_size) > bytes_max) {
    status =
        invalid("{} is too large: {} bytes, at most {} are read", path, info.st_size, bytes_max);
  } else {
    content.resize(static_cast<size_t>(info.st_size));
    size_t at = 0;
    while (at < content.size()) {
      const ssize_t n = ::read(fd, content.data() + at, content.size() - at);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) status = errno_status("cannot read " + path, errno);
      if (n == 0) status = error(Code::kIo, "{} shrank while it was read", path);
      if (n <= 0) break;
      at += static_cast<size_t>(n);
    }
  }
  ::close(fd);
  if (!status.is_ok()) return status;
  return content;
}

Status make_folders(const std::string& path) {
  std::error_code failure;
  fs::create_directories(path, failure);
  if (failure) return errno_status("cannot create folder " + path, failure.value());
  return Status::ok();
}

Status sync_folder(const std::string& path) {
  const int fd = ::open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno_status("cannot open folder " + path, errno);
  const int failed = ::fsync(fd) != 0 ? errno : 0;
  ::close(fd);
  return failed != 0 ? errno_status("cannot flush folder " + path, failed) : Status::ok();
}

bool path_exists(const std::string& path) {
  std::error_code failure;
  return fs::status(path, failure).type() != fs::file_type::not_found;
}

bool is_folder(const std::string& path) {
  std::error_code failure;
  return fs::is_directory(path, failure);
}

Result<std::vector<std::string>> read_folder(const std::string& path) {
  std::vector<std::string> names;
  std::error_code failure;
  for (fs::directory_iterator at(path, failure), end; !failure && at != end; at.increment(failure))
    names.push_back(at->path().filename().string());
  if (failure && failure != std::errc::no_such_file_or_directory)
    return errno_status("cannot list folder " + path, failure.value());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> list_folder(const std::string& path) {
  auto names = read_folder(path);
  return names.is_ok() ? std::move(names).value() : std::vector<std::string>();
}

Status remove_all(const std::string& path) {
  std::error_code failure;
  fs::remove_all(path, failure);
  if (failure) return errno_status("cannot remove " + path, failure.value());
  return Status::ok();
}

std::string join_path(std::string_view folder, std::string_view name) {
  return (fs::path(folder) / name).string();
}

std::string parent_folder(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace flux
