#include "flux/main/output_lock.h"

#include <cerrno>

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include "flux/storage/atomic_file.h"

namespace flux {

namespace {

constexpr const char* kFile = ".lock";
constexpr const char* kDrillFile = ".drill.lock";
constexpr int kTries = 5;  // whoever looks at the holder has it for a moment
constexpr int kTryMs = 5;

std::string text_of(int fd) {
  char text[32] = {};
  const ssize_t n = ::pread(fd, text, sizeof text - 1, 0);
  return n > 0 ? std::string(text, static_cast<size_t>(n)) : "?";
}

// Open and locked, or -1 with the process that has it.
Result<int> lock_file(const std::string& output, const char* name, std::string* other) {
  FLUX_RETURN_IF_ERROR(make_folders(output));
  const std::string path = join_path(output, name);
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return errno_status("cannot create " + path, errno);
  bool locked = ::flock(fd, LOCK_EX | LOCK_NB) == 0;
  for (int i = 1; i < kTries && !locked; ++i) {
    ::poll(nullptr, 0, kTryMs);
    locked = ::flock(fd, LOCK_EX | LOCK_NB) == 0;
  }
  if (!locked) {
    *other = text_of(fd);
    ::close(fd);
    return -1;
  }
  const std::string pid = std::to_string(::getpid());
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, pid.data(), pid.size(), 0) < 0) {
    const Status status = errno_status("cannot write " + path, errno);
    ::close(fd);
    return status;
  }
  return fd;
}

}  // namespace

Result<std::unique_ptr<OutputLock>> OutputLock::take(const std::string& output) {
  std::string other;
  FLUX_ASSIGN_OR_RETURN(const int fd, lock_file(output, kFile, &other));
  if (fd < 0)
    return invalid(
        "output folder {} is in use by process {}; wait for it, stop it, or give another "
        "folder with --set output=DIR",
        output, other);
  return std::unique_ptr<OutputLock>(new OutputLock(fd));
}

Result<std::unique_ptr<OutputLock>> OutputLock::take_for_drill(const std::string& output) {
  std::string other;
  FLUX_ASSIGN_OR_RETURN(const int fd, lock_file(output, kDrillFile, &other));
  if (fd < 0)
    return invalid("the job in {} is being drilled by process {}; wait for its end, or stop it",
                   output, other);
  return std::unique_ptr<OutputLock>(new OutputLock(fd));
}

std::string OutputLock::holder(const std::string& output) {
  const int fd = ::open(join_path(output, kFile).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  const bool free = ::flock(fd, LOCK_SH | LOCK_NB) == 0;  // shared: others may look, too
  std::string who = free ? "" : text_of(fd);
  ::close(fd);
  return who;
}

OutputLock::~OutputLock() {
  ::close(fd_);
}

}  // namespace flux
