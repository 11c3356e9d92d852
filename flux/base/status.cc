#include "flux/base/status.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace flux {

void check_failed(const char* file, int line, const char* what, const std::string& message) {
  std::fprintf(stderr, "flux: bug at %s:%d: %s does not hold: %s\n", file, line, what,
               message.c_str());
  std::abort();
}

const char* code_name(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kInvalid:
      return "invalid";
    case Code::kNotFound:
      return "not found";
    case Code::kIo:
      return "io";
    case Code::kCorrupt:
      return "corrupt";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kStale:
      return "stale";
    case Code::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

Status Status::with_context(std::string_view context) const {
  if (is_ok()) return *this;
  return Status(code_, fmt::format("{}: {}", context, message_));
}

Status errno_status(std::string_view what, int error_number) {
  Code code = Code::kIo;
  switch (error_number) {
    case ENOENT:
      code = Code::kNotFound;
      break;
    case ENOTDIR:
    case EISDIR:
    case EACCES:
    case EPERM:
    case EROFS:
    case EEXIST:
    case ENAMETOOLONG:
      code = Code::kInvalid;
      break;  // the path is the mistake
    default:
      break;
  }
  return error(code, "{}: {}", what, std::strerror(error_number));
}

}  // namespace flux
