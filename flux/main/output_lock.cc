#include "flux/main/output_lock.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "flux/storage/atomic_file.h"

namespace flux {

Result<std::unique_ptr<OutputLock>> OutputLock::take(const std::string& output) {
  FLUX_RETURN_IF_ERROR(make_folders(output));
  const std::string path = join_path(output, ".lock");
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return errno_status("cannot create " + path, errno);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    char text[32] = {};
    const ssize_t n = ::pread(fd, text, sizeof text - 1, 0);
    ::close(fd);
    return invalid(
        "output folder {} is in use by process {}; wait for it, stop it, or give another "
        "folder with --set output=DIR",
        output, n > 0 ? std::string(text, static_cast<size_t>(n)) : "?");
  }
  const std::string pid = std::to_string(::getpid());
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, pid.data(), pid.size(), 0) < 0) {
    const Status status = errno_status("cannot write " + path, errno);
    ::close(fd);
    return status;
  }
  return std::unique_ptr<OutputLock>(new OutputLock(fd));
}

OutputLock::~OutputLock() {
  ::close(fd_);
}

}  // namespace flux
