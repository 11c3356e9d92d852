#include "flux/storage/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace flux {

Result<std::unique_ptr<ReadFile>> ReadFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno_status("cannot open " + path, errno);
  struct stat info {};
  Status status;
  if (::fstat(fd, &info) != 0) status = errno_status("cannot stat " + path, errno);
  if (status.is_ok() && !S_ISREG(info.st_mode)) status = invalid("{} is not a file", path);
  if (!status.is_ok()) {
    ::close(fd);
    return status;
  }
  return std::unique_ptr<ReadFile>(new ReadFile(path, fd, static_cast<uint64_t>(info.st_size)));
}

ReadFile::~ReadFile() { ::close(fd_); }

Status ReadFile::read_at(uint64_t offset, char* out, size_t bytes) const {
  while (bytes > 0) {
    const ssize_t n = ::pread(fd_, out, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_status("cannot read " + path_, errno);
    if (n == 0)
      return error(Code::kIo, "{}: ends at byte {}, it shrank while it was used", path_, offset);
    out += n;
    offset += static_cast<uint64_t>(n);
    bytes -= static_cast<size_t>(n);
  }
  return Status::ok();
}

}  // namespace flux
