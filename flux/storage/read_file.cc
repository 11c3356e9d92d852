#include "flux/storage/read_file.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace flux {
namespace {

int64_t modified_of(const struct stat& st) {
  return st.st_mtim.tv_sec * 1'000'000'000LL + st.st_mtim.tv_nsec;
}

}  // namespace

Result<ReadFile> ReadFile::open(const std::string& path) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return errno_status(path, errno);
  ReadFile file(path, fd, 0);
  struct stat st = {};
  if (::fstat(fd, &st) != 0) return errno_status(path, errno);
  if (S_ISDIR(st.st_mode))
    return invalid("{}: is a directory; name a file, or the files in it with '{}/*'", path, path);
  if (!S_ISREG(st.st_mode)) return invalid("{}: is not a regular file", path);
  file.size_ = static_cast<uint64_t>(st.st_size);
  file.modified_ns_ = modified_of(st);
  return file;
}

ReadFile::ReadFile(ReadFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      modified_ns_(other.modified_ns_) {}

ReadFile& ReadFile::operator=(ReadFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  std::swap(modified_ns_, other.modified_ns_);
  return *this;
}

ReadFile::~ReadFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<bool> ReadFile::is_as_opened() const {
  struct stat st = {};
  if (::fstat(fd_, &st) != 0) return errno_status(path_, errno);
  return static_cast<uint64_t>(st.st_size) == size_ && modified_of(st) == modified_ns_;
}

Status ReadFile::read_at(uint64_t offset, void* out, size_t size) const {
  auto* at = static_cast<char*>(out);
  while (size > 0) {
    const ssize_t n = ::pread(fd_, at, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_status(fmt::format("{}: reading at byte {}", path_, offset), errno);
    if (n == 0)
      return error(Code::kIo, "{}: ends at byte {}, {} bytes too early (was {} bytes when opened)",
                   path_, offset, size, size_);
    at += n;
    offset += static_cast<uint64_t>(n);
    size -= static_cast<size_t>(n);
  }
  return Status::ok();
}

}  // namespace flux
